package apply

import (
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrAggregated,
		ErrBreaksObjects,
		ErrContent,
		ErrDeleting,
		ErrDenied,
		ErrForbidden,
		ErrGenerated,
		ErrImmutable,
		ErrKindNotServed,
		ErrKindUnknown,
		ErrMoved,
		ErrNameTaken,
		ErrNeedsAdoption,
		ErrPartial,
		ErrQuota,
		ErrRefused,
		ErrRejected,
		ErrServer,
		ErrStoredVersion,
		ErrStopped,
	}
}

// RefusalCodes returns the names of the codes of plans that were refused, or that the API server rejected,
// because of an object in the cluster.
func RefusalCodes() []string {
	out := []string{check.ErrUnserved.Name}
	for _, c := range Codes() {
		if c.Final || c.Refusal || c.Approval {
			out = append(out, c.Name)
		}
	}
	return out
}
