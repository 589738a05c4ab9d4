"""Exchange of State, Control and Contacts with the rows of MuJoCo's data."""
