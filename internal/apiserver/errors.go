// Package apiserver gives the errors of requests to an API server codes, and repeats writes that conflict.
package apiserver

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for errors of a cluster.
var (
	ErrCluster = errcode.Code{
		Name: "ClusterUnavailable", Class: errcode.Unavailable,
		Cause: "The API server of the kubeconfig does not respond, or responds with a server error.",
		Fix:   "Check that the cluster runs, and that the kubeconfig and its context are correct.",
	}
	ErrNoPackageAPI = errcode.Code{
		Name: "NoPackageAPI", Class: errcode.NotFound,
		Cause: "The cluster does not serve pkg.crossplane.io: no package manager runs in it.",
		Fix:   "Install one with `xpkg bootstrap --apply`, or use a control plane of `xpkg up`.",
	}
)

// Classify returns an error of the client with a code. An error with a method StartCommand, which is that of a control
// plane that does not run, advises this command.
func Classify(err error, what string, args ...any) error {
	denial, isDenied := apply.DenialOf(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case isDenied:
		return denial.New(err, what, args...)
	case meta.IsNoMatchError(err), IsNotServed(err):
		return ErrNoPackageAPI.New(err, what, args...)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return apply.ErrForbidden.New(err, what, args...)
	case apierrors.IsInvalid(err):
		return ErrRefusedByServer.New(err, what, args...)
	case apierrors.IsConflict(err):
		return apply.ErrMoved.New(err, what, args...).
			WithDo("Another client changed the object at the same time, so the change was not made. Run the command again.")
	}
	if isOverloaded(err) {
		return ErrCluster.New(err, what, args...).
			WithDo("The API server responds, but did not carry out the request. Run the command again later.")
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Errorf(what+": %w", append(args, err)...)
	}
	failed := ErrCluster.New(err, what, args...)
	var stopped interface{ StartCommand() string }
	if errors.As(err, &stopped) {
		return failed.WithDo(
			"Start the control plane with `%s`, or name another cluster with --kubeconfig.", stopped.StartCommand(),
		)
	}
	return failed
}

// isOverloaded reports whether the API server could not process a request that it can possibly process later.
func isOverloaded(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// ErrRefusedByServer is the code for an object that the API server rejects.
var ErrRefusedByServer = errcode.Code{
	Name: "InvalidObject", Class: errcode.Invalid,
	Cause: "The API server rejected the object of the command.",
	Fix:   "Correct the field in the message.",
}

// IsNotServed reports whether a 404 response means that a kind is not served, and not
// that an object does not exist.
func IsNotServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) &&
		(status.Status().Details == nil || status.Status().Details.Name == "")
}
