package revision

import v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"

// IsActive reports whether a revision is to be active.
func IsActive(rev v1.PackageRevision) bool {
	return rev.RevisionSpec().DesiredState == v1.RevisionActive
}
