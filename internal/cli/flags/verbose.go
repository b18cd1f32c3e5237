package flags

// VerboseFlag is the flag that scripts of the field give to every command.
type VerboseFlag struct {
	Verbose bool `help:"Say what is read and written."`
}
