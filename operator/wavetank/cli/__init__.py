"""The ``wavetank`` command. Modules of commands are loaded when called: ``--help`` stays quick."""
