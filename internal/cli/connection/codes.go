package connection

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrKubeconfig is the code for a kubeconfig that cannot be used.
var ErrKubeconfig = errcode.Code{
	Name: "Kubeconfig", Class: errcode.Usage,
	Cause: "There is no kubeconfig, or it does not name a cluster that can be used.",
	Fix:   "Set --kubeconfig or KUBECONFIG, or start a control plane on this machine with `xpkg up`.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrKubeconfig} }
