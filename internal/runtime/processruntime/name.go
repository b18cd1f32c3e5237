package processruntime

import (
	"crypto/sha256"
	"encoding/hex"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ProcessName returns the name of the process of an owner in a namespace. Revisions have no namespace, and their processes
// have their names. The users of a namespace choose the names of its packages, so the name of such a process is derived from
// a digest: it is never the name of another process.
func ProcessName(namespace string, owner plan.Owner) string {
	if owner.Kind != packagesv1alpha1.PackageKind {
		return owner.Name
	}
	sum := sha256.Sum256([]byte(namespace + "/" + owner.Name))
	return "package-" + hex.EncodeToString(sum[:])[:40]
}

func (p *Runtime) process(owner plan.Owner) string { return ProcessName(p.opts.Namespace, owner) }
