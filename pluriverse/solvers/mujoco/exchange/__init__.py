"""What goes between State, Control and Contacts and the rows of MuJoCo's data."""
