package content

import (
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
)

// ContentFlags configures access to packages through the package cache.
type ContentFlags struct {
	flags.CacheFlags
	flags.TrustFlags
}
