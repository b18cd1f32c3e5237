package inventory

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrDeleting is the code for a command that would change a package that is being deleted.
var ErrDeleting = errcode.Code{
	Name: "PackageDeleting", Class: errcode.Conflict,
	Cause: "The package is being deleted, so it cannot be changed or installed again yet.",
	Fix:   "Wait until it is deleted with `xpkg uninstall` and --wait, and try again.",
}

// IsDeleting reports whether a package is being deleted.
func IsDeleting(p v1.Package) bool { return p.GetDeletionTimestamp() != nil }

// CheckNotDeleting returns an error if a package is being deleted.
func CheckNotDeleting(p v1.Package) error {
	if !IsDeleting(p) {
		return nil
	}
	return ErrDeleting.New(nil, "%s is being deleted", ShortName(p)).
		WithDo(
			"Wait until it is deleted with `xpkg uninstall %s --wait 2m`, which names the finalizers that delay it, and try again.",
			ShortName(p),
		)
}

// packageHolder returns the package as a holder of its own deletion, and false if it has no finalizer of
// another program.
func packageHolder(p v1.Package) (apply.Holder, bool) {
	others := slices.DeleteFunc(
		slices.Clone(p.GetFinalizers()), func(f string) bool { return f == v1.FinalizerRuntimeProtection },
	)
	return apply.Holder{Resource: strings.ToLower(p.PackageKind()) + "s." +
		v1.Group, Name: p.GetName(), Finalizers: others}, len(others) > 0
}

// shownHolders is the maximum number of holders in a message.
const shownHolders = 3

// DeletionDelay returns the reason why the deletion of a package is incomplete, and the remedy. The holders
// are the objects of the package with finalizers. A package with custom resources waits for an answer of a user.
func DeletionDelay(p v1.Package, holders []apply.Holder) (reason, remedy string) {
	if ready := p.GetCondition(v1.TypeReady); ready.Reason == v1.ReasonCustomResourcesExist {
		reason, remedy, _ = strings.Cut(ready.Message, ". ")
		return strings.ToLower(reason[:1]) + reason[1:], remedy
	}
	if own, held := packageHolder(p); held {
		holders = append([]apply.Holder{own}, holders...)
	}
	if len(holders) == 0 {
		return "", "The deletion continues. Check that the manager and the garbage collector run with `xpkg doctor`."
	}
	var reasons []string
	for _, h := range holders {
		reasons = append(reasons, delayOf(h))
	}
	return wording.Few(reasons, shownHolders, "; "), remedyOf(holders[0])
}

// delayOf returns how an object delays a deletion.
func delayOf(h apply.Holder) string {
	name := h.Resource + "/" + h.Name
	if h.Defines == "" {
		if h.Namespace != "" {
			name += " in " + h.Namespace
		}
		return fmt.Sprintf("%s has the finalizer %s", name, strings.Join(h.Finalizers, ", "))
	}
	text := name + " is kept until its custom resources are deleted"
	if h.Remaining >= 0 {
		verb := "are"
		if h.Remaining == 1 {
			verb = "is"
		}
		text = fmt.Sprintf("%s is kept until its %s %s deleted", name, wording.Count(h.Remaining, "custom resource"), verb)
	}
	if h.Terminating != "" {
		text += ": " + strings.TrimSuffix(h.Terminating, ".")
	}
	return text
}

// remedyOf returns the commands for an object that delays a deletion.
func remedyOf(h apply.Holder) string {
	if h.Defines != "" && strings.HasPrefix(h.Resource, "compositeresourcedefinitions.") {
		// Core deletes the composite resources that have no namespace.
		resource := wording.ShellWord(h.Defines)
		return fmt.Sprintf("Crossplane core keeps the XRD until they are deleted, and does not delete those in namespaces itself. See them with `kubectl get %s --all-namespaces`, and delete them with `kubectl delete %s --all --all-namespaces`. Do not remove the finalizer of the XRD.",
			resource, resource)
	}
	if h.Defines != "" {
		// Without its finalizer the CRD would be deleted, and its custom resources would remain in the database.
		return fmt.Sprintf("See the remaining custom resources with `kubectl get %s --all-namespaces`, and the CRD with `kubectl describe crd %s`. Do not remove the finalizer of the CRD.",
			wording.ShellWord(h.Defines), wording.ShellWord(h.Name))
	}
	first := fmt.Sprintf("%s %s", h.Resource, wording.ShellWord(h.Name))
	if h.Namespace != "" {
		first += " --namespace " + h.Namespace
	}
	return fmt.Sprintf(
		"The deletion continues when the finalizer is removed by the controller that set it: see `kubectl get %s -o yaml`. If that controller does not run any more, remove the finalizer with `kubectl patch %s --type merge -p '{\"metadata\":{\"finalizers\":null}}'`.",
		first, first)
}
