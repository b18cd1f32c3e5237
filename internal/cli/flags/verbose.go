package flags

// VerboseFlag is the flag --verbose, which Crossplane's CLI accepts for every command.
type VerboseFlag struct {
	Verbose bool `help:"Print each blob that is read or written."`
}
