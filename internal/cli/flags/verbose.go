package flags

// VerboseFlag is the flag that scripts of the field give to every command.
type VerboseFlag struct {
	Verbose bool `help:"Print each blob that is read or written."`
}
