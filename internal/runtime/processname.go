package runtime

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ProcessName returns the name of the process of an owner. Revisions have no namespace, and their processes have their
// names. The users of a namespace choose the names of its packages, so the name of such a process is derived from a
// digest: it is never the name of another process.
func ProcessName(owner plan.Owner) string {
	if owner.Namespace == "" {
		return owner.Name
	}
	sum := sha256.Sum256([]byte(owner.Namespace + "/" + owner.Name))
	return "package-" + hex.EncodeToString(sum[:])[:40]
}
