package content

import (
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
)

// ContentFlags configure access to packages through the package cache.
type ContentFlags struct {
	flags.CacheFlags
	Insecure []string `placeholder:"HOST" help:"Use plain HTTP for this registry. Loopback registries use HTTP unless a CA is given."`
	CAFile   []string `name:"ca-file" placeholder:"HOST=FILE" help:"Certificate authorities (PEM) to trust for a registry in place of the system's."`
}
