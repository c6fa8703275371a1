//! What agents say and things are called, in front of a person at a terminal: nothing of it commands the terminal.
