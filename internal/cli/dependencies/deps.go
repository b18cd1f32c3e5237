package dependencies

// DepsCmd implements `xpkg deps`.
type DepsCmd struct {
	Vendor depsVendorCmd `cmd:"" help:"Collect packages and their dependencies in an OCI layout, for an air-gapped network."`
	Push   depsPushCmd   `cmd:"" help:"Push a vendored OCI layout to another registry, and print ImageConfigs for clusters that use it."`
}
