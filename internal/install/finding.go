package install

import (
	"slices"

	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Finding is the error with which the manager refuses a package before it writes an object: its code, its text, and its
// fix.
type Finding struct {
	// Package is the refused package as users write it. It is empty for the package that was requested itself.
	Package string `json:"package,omitempty"`
	Stage   Stage  `json:"stage"`
	Code    string `json:"code"`
	Reason  string `json:"reason"`
	Fix     string `json:"fix"`
}

// codes are the codes of findings.
func codes() []errcode.Code {
	return []errcode.Code{
		revision.ErrSharedWebhook, rbac.ErrReservedDefinition, rbac.ErrPermissionDenied, webhooks.ErrNotAllowed,
		xpkg.ErrIncompatible,
		runtime.ErrNoProgram, unpack.ErrWrongPlatform, manifests.ErrPrivileges, manifests.ErrNotForProcesses,
		manifests.ErrRejected, runtime.ErrRuntimeConfig,
		runtimedefaults.ErrInvalid, deployment.ErrNameConflict,
	}
}

// Find returns the finding of a failed check, and false if the failure refuses nothing: it only waits for an approval,
// or the check was not possible.
func Find(s Stage, failure error) (Finding, bool) {
	failed := errcode.From(failure)
	isCode := func(c errcode.Code) bool { return c.Name == failed.Code.Name }
	return Finding{Stage: s, Code: failed.Code.Name, Reason: failed.Error(), Fix: failed.Do},
		slices.ContainsFunc(codes(), isCode)
}

// Err returns the error of the finding.
func (f Finding) Err() *errcode.Error {
	code := errcode.Unknown
	for _, c := range codes() {
		if c.Name == f.Code {
			code = c
		}
	}
	what := f.Reason
	if f.Package != "" {
		what = f.Package + " cannot be installed: " + what
	}
	return code.New(nil, "%s", what).WithDo("%s", f.Fix)
}
