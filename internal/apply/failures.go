package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// Codes for reading a cluster and carrying out a plan.
var (
	ErrRefused = errcode.Code{
		Name: "ForeignOwner", Class: errcode.Conflict, Refusal: true,
		Cause: "An object of the package belongs to another owner.",
		Fix:   "If another version of the package that holds the object does not contain it, update that package first, or both with one command: the object stays, and this package takes it over. Otherwise uninstall one of both; an uninstall deletes the custom resources of its CRDs. If no package holds the object, remove it, and try again. Nothing was written.",
	}
	ErrNeedsAdoption = errcode.Code{
		Name: "NeedsAdoption", Class: errcode.Conflict, Approval: true,
		Cause: "A user created an object that the package contains. The package would overwrite it.",
		Fix:   "Review the objects. Adopt them with `xpkg install --adopt`, `xpkg update --adopt` or `xpkg approve`, or delete them. Nothing was written.",
	}
	ErrDeleting = errcode.Code{
		Name: "ObjectDeleting", Class: errcode.Conflict, Refusal: true,
		Cause: "An object of the package is being deleted.",
		Fix:   "Wait until the object is deleted; the package manager continues automatically. If it is not deleted, it has a finalizer: inspect it with kubectl. Nothing was written.",
	}
	ErrImmutable = errcode.Code{
		Name: "ImmutableField", Class: errcode.Conflict, Refusal: true,
		Cause: "The package changes a field that can never change: of a CRD, XRD or MRD in the cluster, such as its scope, or the type of a Composition.",
		Fix:   "Keep the installed version, or ask the author of the package for a version that renames the resource. If nothing needs the object in the cluster, nor the custom resources of a CRD, delete it: the manager continues automatically. Nothing was written.",
	}
	ErrStoredVersion = errcode.Code{
		Name: "StoredVersionInUse", Class: errcode.Conflict, Refusal: true,
		Cause: "The package drops a version of a CRD in which custom resources can be stored, and they cannot be migrated to a version that stays: the package has none that the cluster has too, and a webhook converts between them, or xpkg may not rewrite them.",
		Fix:   "Update to a version of the package that has both versions first, allow the manager to rewrite the custom resources with `--package-group`, or delete them. The manager tries again at least once a minute, and at once after the same `xpkg update`. Nothing was written.",
	}
	ErrBreaksObjects = errcode.Code{
		Name: "BreaksObjects", Class: errcode.Conflict, Refusal: true,
		Cause: "The package changes the schema of a CRD so that custom resources in the cluster lose values, or so that the API server rejects their next update; or it may, and they cannot be read.",
		Fix:   "Change or delete the custom resources that the message names; the manager tries again at least once a minute, and at once after the same `xpkg update`. Or accept that they break, with the command in the message. Nothing was written.",
	}
	ErrNameTaken = errcode.Code{
		Name: "NameTaken", Class: errcode.Conflict, Refusal: true,
		Cause: "A CRD, XRD or MRD of the package has a kind, plural, singular or short name that another CRD or XRD of its group has. The API server would not serve it.",
		Fix:   "Uninstall the package that holds the other CRD or XRD, or ask the author of the package for another name. Nothing was written.",
	}
	ErrAggregated = errcode.Code{
		Name: "AggregatedAPI", Class: errcode.Conflict, Refusal: true,
		Cause: "An aggregated API serves the group and version of a CRD, XRD or MRD of the package. The API server would send all requests for the custom resources to it.",
		Fix:   "If nothing needs the aggregated API, delete its APIService with `kubectl delete apiservice`. Otherwise ask the author of the package for another group or version. Nothing was written.",
	}
	ErrDenied = errcode.Code{
		Name: "AdmissionDenied", Class: errcode.Unauthorized, Refusal: true,
		Cause: "An admission policy or webhook of the cluster denied an object of the package.",
		Fix:   "Change the policy that the message names, or the package. The manager tries again at least once a minute, and at once after the same `xpkg update`; it changes nothing meanwhile.",
	}
	ErrPartial = errcode.Code{
		Name: "PartlyWritten", Class: errcode.Unauthorized,
		Cause: "An admission policy or webhook of the cluster denied an object of a new version after other objects had been written: it changed meanwhile, denies an object other than those of the package, or does not support dry runs. An update is rolled back at once.",
		Fix:   "Change the policy that the message names, or the package. Then repeat the update.",
	}
	ErrQuota = errcode.Code{
		Name: "QuotaExceeded", Class: errcode.Unauthorized,
		Cause: "A ResourceQuota of a namespace allows no further object.",
		Fix:   "Delete objects that are not needed, or let an administrator raise the quota that the message names. The manager repeats its attempts.",
	}
	ErrMoved = errcode.Code{
		Name: "ObjectMoved", Class: errcode.Conflict,
		Cause: "Another client changed an object between the plan and its execution.",
		Fix:   "No action needed: the manager computes a new plan and tries again.",
	}
	ErrRejected = errcode.Code{
		Name: "ObjectRejected", Class: errcode.Invalid, Final: true,
		Cause: "The API server refused an object of the package.",
		Fix:   "Correct the object in the package and publish a new version; `xpkg lint` finds most of these before a package is published.",
	}
	ErrGenerated = errcode.Code{
		Name: "GeneratedObjectRejected", Class: errcode.Internal,
		Cause: "The API server refuses an object that xpkg generates, such as a role, a revision or a Secret. This is no mistake of the package's author.",
		Fix:   "Report the whole message, unless it names a setting of the cluster. The manager repeats its attempts.",
	}
	ErrForbidden = errcode.Code{
		Name: "Forbidden", Class: errcode.Unauthorized,
		Cause: "The cluster does not allow xpkg to read or write an object.",
		Fix:   "Grant the permission that the message names to the identity that xpkg runs as.",
	}
	ErrServer = errcode.Code{
		Name: "ServerUnavailable", Class: errcode.Unavailable,
		Cause: "The API server did not respond, or could not serve a request.",
		Fix:   "Check that the cluster is reachable and healthy; the attempt is repeated.",
	}
	ErrKindNotServed = errcode.Code{
		Name: "KindNotServed", Class: errcode.NotFound,
		Cause: "A package contains objects of a kind that the cluster does not serve, such as Compositions after the CRD of Composition was deleted.",
		Fix:   "Install the CRD of the kind. Without Crossplane, the manager installs the kinds of Crossplane when it starts: restart it.",
	}
	ErrKindUnknown = errcode.Code{
		Name: "KindNotInstallable", Class: errcode.Unsupported,
		Cause: "An object is of a kind that no package can install.",
		Fix:   "Remove the object from the package, or use a version of xpkg that supports the kind.",
	}
	ErrContent = errcode.Code{
		Name: "ContentUnusable", Class: errcode.Internal,
		Cause: "The content of an object that a plan writes is missing, or it is not a JSON object.",
		Fix:   "Compute a new plan. If the error persists, report the whole message.",
	}
	ErrStopped = errcode.Code{
		Name: "PlanInterrupted", Class: errcode.Interrupted,
		Cause: "The operation ended before everything was read or written.",
		Fix:   "Start the operation again: it continues with the remaining changes.",
	}
)

// classify returns the error of a call with its code.
func classify(err error, what string, args ...any) error {
	var known *errcode.Error
	if errors.As(err, &known) {
		return err
	}
	code := ErrServer
	denial, isDenied := DenialOf(err)
	var status apierrors.APIStatus
	switch {
	case stopped(err):
		code = ErrStopped
	case isDenied:
		code = denial
	case notServed(err):
		code = ErrKindNotServed
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), anotherUID(err):
		code = ErrMoved
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		code = ErrForbidden
	case isRejected(err):
		code = ErrRejected
	case !errors.As(err, &status) && !errors.Is(err, errNoAnswer):
		err = fmt.Errorf("the response of the API server cannot be read: %w", err)
	}
	failed := code.New(err, what, args...)
	if dropsStored(err) {
		return failed.WithDo("Objects can be stored in the missing version. First update to a version of the package that still contains it; " +
			"once no object is stored in it, remove it from status.storedVersions of the CRD.")
	}
	return failed
}

// isRejected reports whether the API server refused the content of an object.
func isRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		tooLargeForDatabase(err)
}

// ClassifyGenerated returns the error of the write of an object that xpkg generates with the code
// GeneratedObjectRejected if the API server refused its content, and every other error as it is: a denial has a cause
// outside of the object.
func ClassifyGenerated(err error) error {
	if err == nil || errcode.Known(err) || deniedByAdmission(err) || !isRejected(err) || anotherUID(err) {
		return err
	}
	return ErrGenerated.New(nil, "%s", err.Error())
}

// ClassifyForbidden returns the error of a request of the manager that the API server does not allow with the code
// Forbidden, AdmissionDenied or QuotaExceeded, and every other error as it is.
func ClassifyForbidden(err error) error {
	if err == nil || errcode.Known(err) {
		return err
	}
	if code, ok := DenialOf(err); ok {
		return code.New(nil, "%s", err.Error())
	}
	if !apierrors.IsForbidden(err) {
		return err
	}
	return ErrForbidden.New(nil, "%s", err.Error()).
		WithDo(
			"Apply the manifests of `xpkg bootstrap` again: they grant the permissions that this version of the manager needs.",
		)
}

// DenialOf returns the code of a write that an admission webhook or policy, or a quota, denied, and false for any other
// error. Such a denial has the reason Forbidden, which also stands for a missing permission, or another reason that the
// policy selects.
func DenialOf(err error) (errcode.Code, bool) {
	switch {
	case deniedByAdmission(err):
		return ErrDenied, true
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: "):
		return ErrQuota, true
	}
	return errcode.Code{}, false
}

// deniedByAdmission reports whether an admission webhook or policy denied a write. The
// API server has no field for that.
func deniedByAdmission(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(err.Error(), "denied") &&
		(strings.Contains(err.Error(), "admission webhook") || strings.Contains(err.Error(), "AdmissionPolicy"))
}

// tooLargeForDatabase reports whether the database of the API server refused an object because
// of its size. The API server then returns an internal error.
func tooLargeForDatabase(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "etcdserver: request is too large") ||
		strings.Contains(text, "ResourceExhausted") && strings.Contains(text, "message larger than max")
}

// dropsStored reports whether a definition was refused because it leaves out a version in
// which objects may be stored.
func dropsStored(err error) bool {
	return apierrors.IsInvalid(err) &&
		hasCause(err, func(c metav1.StatusCause) bool { return strings.HasPrefix(c.Field, "status.storedVersions") })
}

// stopped reports whether the caller canceled the call.
func stopped(err error) bool {
	return !errors.Is(err, errNoAnswer) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// errNoAnswer is the cause of calls without a response, whose result is unknown.
var errNoAnswer = errors.New("the API server did not respond")

// IsUnreachable reports whether the API server did not respond, even to repeated calls.
func IsUnreachable(err error) bool { return errors.Is(err, errNoAnswer) }

// anotherUID reports whether a patch was refused because the object of that name is
// not the one that it was made for. An API server calls that invalid.
func anotherUID(err error) bool {
	return apierrors.IsInvalid(err) && hasCause(err, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// notServed distinguishes the 404 of an unknown path from the 404 of an unknown object. API servers return the former
// as plain text, regardless of the requested format.
func notServed(err error) bool {
	return apierrors.IsNotFound(err) &&
		hasCause(err, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

func hasCause(err error, is func(metav1.StatusCause) bool) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, is)
}

// Refused returns the error of a plan with refusals. It names the first of them, and the commands that resolve them.
// Its code is the code of the first cause that a retry cannot resolve.
func Refused(refusals []plan.Refusal, what string, args ...any) *errcode.Error {
	const most = 3
	var reasons, fixes []string
	for _, r := range refusals {
		reasons = append(reasons, r.Reason)
		if r.Fix != "" && !slices.Contains(fixes, r.Fix) {
			fixes = append(fixes, r.Fix)
		}
	}
	code := refusalCode(refusals)
	if len(fixes) == 0 && code.Name == ErrRefused.Name {
		fixes = fixesOfHeld(refusals)
	}
	err := code.New(errors.New(wording.Few(reasons, most, "; ")), what, args...)
	if len(fixes) > 0 {
		return err.WithDo("%s", wording.Few(fixes, most, "; "))
	}
	return err
}

// fixesOfHeld returns the remedy for objects that other packages own, if one package owns all of them.
func fixesOfHeld(refusals []plan.Refusal) []string {
	holder := HolderOf(refusals)
	if holder == "" {
		return nil
	}
	return []string{HeldAdvice(holder, fmt.Sprintf("update it first with `xpkg update %s`", holder))}
}

// HolderOf returns the package that owns all objects of refusals without a remedy of their own, in the form of command
// arguments, or "".
func HolderOf(refusals []plan.Refusal) string {
	holder := refusals[0].Holder
	kind, name, _ := strings.Cut(holder, "/")
	if !slices.Contains(v1.PackageKinds(), kind) ||
		slices.ContainsFunc(refusals, func(r plan.Refusal) bool { return r.Holder != holder || r.Fix != "" }) {
		return ""
	}
	return v1.ObjectName(kind, name)
}

// HeldAdvice returns the remedy for objects that a package holds. Update is the clause with the command that updates
// the package.
func HeldAdvice(holder, update string) string {
	return fmt.Sprintf("If another version of %s does not contain the object, %s: the object stays, and this package takes it over. "+
		"Otherwise uninstall one of both; an uninstall deletes the custom resources of its CRDs. Nothing was written.",
		holder, update)
}

func refusalCode(refusals []plan.Refusal) errcode.Code {
	for _, c := range []struct {
		cause plan.Cause
		code  errcode.Code
	}{
		{plan.ForeignOwner, ErrRefused}, {plan.ImmutableField, ErrImmutable},
		{plan.StoredVersionInUse, ErrStoredVersion}, {plan.NoServedVersion, check.ErrUnserved},
		{plan.NameTaken, ErrNameTaken}, {plan.BreaksObjects, ErrBreaksObjects},
		{plan.AggregatedAPI, ErrAggregated},
		{plan.NeedsAdoption, ErrNeedsAdoption},
	} {
		if slices.ContainsFunc(refusals, func(r plan.Refusal) bool { return r.Cause == c.cause }) {
			return c.code
		}
	}
	return ErrDeleting
}
