package deployment

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrNameConflict is the code for a runtime whose objects have the names of other objects.
var ErrNameConflict = errcode.Code{
	Name: "NameConflict", Class: errcode.Conflict,
	Cause: "An object of a package runtime has the name of an object with another owner.",
	Fix:   "Remove or rename the object in the message, or rename the runtime's object with a DeploymentRuntimeConfig.",
}

// classify adds a code to the error of a call, unless the error has one or is a cancellation.
// Action is the verb of the call.
func classify(err error, action string, o client.Object) error {
	var known *errcode.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	code := apply.ErrServer
	denial, isDenied := apply.DenialOf(err)
	switch {
	case isDenied:
		code = denial
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		code = apply.ErrMoved
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		code = apply.ErrForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		code = manifests.ErrRejected
	}
	return code.New(err, "%s %s", action, nameOf(o))
}

// nameOf returns the kind, namespace and name of an object for messages.
func nameOf(o client.Object) string { return kindOf(o) + " " + o.GetNamespace() + "/" + o.GetName() }
