package operation

import (
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for installs.
var (
	ErrInstalledOtherwise = errcode.Code{
		Name: "AlreadyInstalled", Class: errcode.Conflict,
		Cause: "A package of that kind and name is installed from another reference, or the repository is installed already. Two packages from one repository contain the same objects.",
		Fix:   "To change the version of the installed package, use `xpkg update`. To install a package from another repository, use another name for it.",
	}
	ErrWait = errcode.Code{
		Name: "NotHealthyInTime", Class: errcode.Timeout,
		Cause: "The package, or a package that it requires, did not become healthy within the time of --wait.",
		Fix:   "The operation continues. Check it with `xpkg tree`, or wait longer with --wait.",
	}
)

// ErrStillGoing is the code for an uninstall that is incomplete after the time of --wait.
var ErrStillGoing = errcode.Code{
	Name: "NotRemovedInTime", Class: errcode.Timeout,
	Cause: "The package or its objects were not deleted within the time of --wait.",
	Fix:   "The deletion continues. An object that remains has a finalizer: inspect it with kubectl.",
}

// ErrRecreated is the code for a package that was created again while an uninstall waited for its deletion.
var ErrRecreated = errcode.Code{
	Name: "PackageRecreated", Class: errcode.Conflict,
	Cause: "The package was deleted, and the package manager or another client created it again.",
	Fix:   "Run `xpkg plan uninstall` with the name of the package: it lists the packages and install objects that require it. Uninstall these first. If there are none, another client has installed the package again.",
}

// Codes for refused transactions.
var (
	ErrConsent = errcode.Code{
		Name: "TransactionConsent", Class: errcode.Untrusted,
		Cause: "The policies are not in force that deny users transactions with changes which they may not make themselves, or the transaction selects another repository for a package whose consents were given for the present one.",
		Fix:   "Apply the manifests of `xpkg bootstrap` again, or name the consents in the transaction.",
	}
	ErrNoTransactions = errcode.Code{
		Name: "NoTransactions", Class: errcode.Unsupported,
		Cause: "The cluster does not have the API of transactions: its packages are managed by Crossplane, or by an earlier version of xpkg. Or the manager does not carry them out.",
		Fix:   "Repeat the command without --atomic, or install the manager with `xpkg bootstrap --apply`.",
	}
)

// Codes for the ChangePolicy.
var (
	ErrNoCreator = errcode.Code{
		Name: "CreatorUnknown", Class: errcode.Untrusted,
		Cause: "The transaction needs the approval of another user than its creator, and does not name its creator.",
		Fix:   "Create it with the annotation xpkg.dev/user, which has the name of the user who creates it, as xpkg does.",
	}
	ErrNoApproval = errcode.Code{
		Name: "NoApprovalNeeded", Class: errcode.Conflict,
		Cause: "The transaction needs no approval now, or not the one of this user: it has started or ended, or the user has created it.",
		Fix:   "See what it waits for with `kubectl get transactions.xpkg.dev`.",
	}
	ErrNotStable = errcode.Code{
		Name: "NotStable", Class: errcode.Unhealthy,
		Cause: "A package did not stay healthy for the time for which the ChangePolicy watches a new set of packages.",
		Fix:   "See why with `xpkg describe` and `xpkg history`, and try again with a version that stays healthy.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrInstalledOtherwise,
		ErrRecreated,
		ErrStillGoing,
		ErrConsent,
		ErrNoTransactions,
		ErrNoApproval,
		ErrNoCreator,
		ErrNotStable,
		ErrWait,
	}
}
