package dependencies

type DepsCmd struct {
	Vendor depsVendorCmd `cmd:"" help:"Collect packages and everything that they need into the folder of an OCI layout, for a place without a network."`
	Push   depsPushCmd   `cmd:"" help:"Push such a folder to another registry, and print the ImageConfigs that make a cluster use it."`
}
