// Package consent decides which consents in annotations apply to a revision.
//
// A consent loosens a protection: webhooks for resources of others, the adoption of objects of users, changes of CRDs
// that break custom resources, and the approval of permissions. It requires the permission to update the revisions of
// the kind of package. RBAC enforces that for annotations of revisions, and the fences of [Fences] for annotations of
// packages, also of those in Transactions. Without the fences, consents in annotations of packages do not count.
package consent

import (
	"context"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// Consents are the annotations of packages and revisions with which a user consents.
func Consents() []fence.Consent {
	return []fence.Consent{
		{Annotation: webhooks.AnnotationAllowed, Separator: ";", Permits: "lets webhooks of the package cover resources of others"},
		{Annotation: revision.AnnotationAdopt, Separator: ",", Permits: "lets the package adopt objects of users"},
		{
			Annotation: revision.AnnotationAcceptBreaks, Separator: ";",
			Permits: "lets a version of the package break custom resources",
		},
	}
}

// Fences returns the fences that deny consents of users without the permission to update revisions: in packages, and in
// Transactions.
func Fences() []fence.Fence {
	approval := fence.Consent{
		Annotation: permission.AnnotationApproved, Separator: ",", Permits: "approves permissions of the runtime",
	}
	guarded := fence.Guarded{
		Resources: []string{
			"providers", "configurations", "functions", "providerrevisions", "configurationrevisions", "functionrevisions",
		},
		Consents: append(Consents(), approval),
		Safeguards: []fence.Safeguard{{
			Annotation: permission.AnnotationIncrease, Value: permission.ApproveIncrease,
			Without: "versions that request more permissions do not wait for approval",
		}},
		Sources: []string{revision.AnnotationImageSource},
	}
	return []fence.Fence{fence.Consents(guarded), fence.Transactions(guarded)}
}

// IsFence reports whether a policy or a binding with this name is a part of one of the fences.
func IsFence(name string) bool { return name == fence.ConsentsName || name == fence.TransactionsName }

// Gap is the reason why the fences are not in force. The zero value means that they are.
type Gap struct {
	Why, Fix string
	// IsUnknown reports that the reader may not read the fences, which may be in force.
	IsUnknown bool
}

// Advise returns why the consents of a package do not count, and what to do.
func (g Gap) Advise(p v1.Package) string {
	name := revision.ObjectName(p)
	return "The consent in the annotations of " + name + " does not count, because " + g.Why +
		": any user who may write packages could have given it. " +
		g.Fix + " Or run `xpkg approve " + name + "`, which also records the consent on the revision, for this version alone."
}

// bootstrap is the remedy for a fence that the manager cannot write or read.
const bootstrap = "Apply the manifests of `xpkg bootstrap` again: they contain the policy, and the permissions with which the manager maintains it."

// Check returns the gap of a cluster in the fence of consents in packages.
func Check(ctx context.Context, reader client.Reader) (Gap, error) {
	return check(ctx, reader, Fences()[0])
}

// CheckApprovals returns the gap of a cluster in the fence of approvals of Transactions.
func CheckApprovals(ctx context.Context, reader client.Reader) (Gap, error) {
	return check(ctx, reader, fence.Approvals())
}

// CheckTransactions returns the first gap of a cluster in the fences, also of Transactions, which need both.
func CheckTransactions(ctx context.Context, reader client.Reader) (Gap, error) {
	for _, f := range Fences() {
		if gap, err := check(ctx, reader, f); err != nil || gap != (Gap{}) {
			return gap, err
		}
	}
	return Gap{}, nil
}

// check returns the gap of one fence.
func check(ctx context.Context, reader client.Reader, f fence.Fence) (Gap, error) {
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	key := client.ObjectKey{Name: f.Name}
	for _, o := range []client.Object{policy, binding} {
		switch err := reader.Get(ctx, key, o); {
		case meta.IsNoMatchError(err):
			return Gap{
				Why: "the API server does not serve ValidatingAdmissionPolicies, as it does since Kubernetes 1.30",
				Fix: "Update Kubernetes.",
			}, nil
		case apierrors.IsForbidden(err):
			return Gap{Why: "the policy " + f.Name + " cannot be read: " + err.Error(), Fix: bootstrap, IsUnknown: true}, nil
		case apierrors.IsNotFound(err):
			return Gap{Why: "the policy " + f.Name + " or its binding does not exist", Fix: bootstrap}, nil
		case err != nil:
			return Gap{}, err
		}
	}
	if !f.IsInForce(policy, binding) {
		return Gap{
			Why: "the policy " + f.Name + " or its binding is not the one of this version of xpkg",
			Fix: "Run `kubectl delete validatingadmissionpolicy,validatingadmissionpolicybinding " + f.Name +
				"`; the manager writes it again.",
		}, nil
	}
	return Gap{}, nil
}

// IsGiven reports whether the annotations of a package have consents.
func IsGiven(p v1.Package) bool {
	for _, c := range Consents() {
		if p.GetAnnotations()[c.Annotation] != "" {
			return true
		}
	}
	return false
}

// RemoveCommand returns the command that removes the consents from a package.
func RemoveCommand(p v1.Package) string {
	out := "kubectl annotate " + strings.ToLower(p.PackageKind()) + "s." + v1.Group + " " + p.GetName()
	for _, c := range Consents() {
		out += " " + c.Annotation + "-"
	}
	return out
}

// Without returns a copy of a package without consents.
func Without(p v1.Package) v1.Package {
	out := p.DeepCopyObject().(v1.Package)
	annotations := maps.Clone(out.GetAnnotations())
	for _, c := range Consents() {
		delete(annotations, c.Annotation)
	}
	out.SetAnnotations(annotations)
	return out
}
