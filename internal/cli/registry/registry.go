// Package registry contains the commands of registries of packages: the server, its tokens, and the status of versions
// in any registry.
package registry

// RegistryCmd implements `xpkg registry`.
type RegistryCmd struct {
	Serve     serveCmd     `cmd:"" help:"Serve a registry of packages with an index and a search, or put these in front of another registry."`
	Export    exportCmd    `cmd:"" help:"Write the web pages of packages as files."`
	Token     tokenCmd     `cmd:"" help:"Manage the tokens of a registry server."`
	Mirror    mirrorCmd    `cmd:"" help:"Copy the packages of an index to another registry, and keep it up to date."`
	Prune     pruneCmd     `cmd:"" help:"List or delete old prereleases that nothing needs."`
	Yank      yankCmd      `cmd:"" help:"Exclude a version from new installations. Lock files and installed packages keep working."`
	Unyank    unyankCmd    `cmd:"" help:"Withdraw the status of a version."`
	Deprecate deprecateCmd `cmd:"" help:"Mark a version as deprecated: it is only selected if no other version fits."`
	Delete    deleteCmd    `cmd:"" help:"Delete a version. Its status remains, so that lock files report the reason."`
}
