"""The errors of the scene loader."""


class SapSceneLoaderError(ValueError):
    """A scene file cannot be loaded; the message names file, line, field, value and remedy."""


class SapUnsupportedSceneFeature(SapSceneLoaderError):  # noqa: N818 (the format's name)
    """A scene asks for something that the format knows and this version does not do."""

    def __init__(self, message: str, features: tuple[str, ...]):
        super().__init__(message)
        self.features = features
        """What is not supported, one text per feature."""


class FieldError(ValueError):
    """A value below a field is wrong; `path` leads from that field to the value."""

    def __init__(self, message: str, *path: str | int):
        super().__init__(message)
        self.path = path
