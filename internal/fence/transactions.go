package fence

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

// TransactionsName is the name of the fence of transactions.
const TransactionsName = "xpkg-transactions"

// AnnotationUser names the user who has created a Transaction.
const AnnotationUser = "xpkg.dev/user"

// Transactions returns the fence of Transactions. The manager carries them out with its own permissions, so an identity
// that may not create, update and delete the packages of a kind creates no Transaction with packages of this kind. An
// identity that may not update the revisions of a kind creates none with guarded annotations of its packages, unless
// they remove a consent or keep a safeguard.
//
// The status contains the former state of the packages, to which the manager returns them. A write of it needs the
// permissions for packages and revisions of every kind.
//
// The annotation [AnnotationUser] can only name the user who creates the Transaction, and does not change.
func Transactions(g Guarded) Fence {
	f := Fence{
		Name: TransactionsName, Purpose: "denies transactions of users who may not make their changes",
		Risk: "the manager does not accept consents in annotations of packages and transactions",
		// The spec of a Transaction cannot be changed.
		Conditions: []admissionv1.MatchCondition{{
			Name: "creates-or-reports", Expression: `request.operation == "CREATE" || ` + reports + ` || ` + user("object") +
				` != ` + user("oldObject"),
		}},
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rules: []admissionv1.Rule{{
			APIGroups: []string{v1alpha1.Group}, APIVersions: []string{"*"},
			Resources: []string{"transactions", "transactions/status"},
		}},
		Variables: []admissionv1.Variable{
			{Name: "reports", Expression: reports},
			{Name: "kinds", Expression: "object.spec.packages.map(p, p.kind) + object.spec.remove.map(p, p.kind)"},
			{Name: "guarded", Expression: "object.spec.packages.filter(p, has(p.annotations) && (" + g.isIn("p.annotations") +
				")).map(p, p.kind)"},
		},
	}
	f.Validations = append(f.Validations, admissionv1.Validation{
		Expression: fmt.Sprintf("request.operation == 'UPDATE' ? %[1]s == %[2]s : %[1]s in ['', request.userInfo.username]",
			user("object"), user("oldObject")),
		Message: "The annotation " + AnnotationUser + " of a transaction names another user than the one who creates it, or changes later.",
	})
	for _, kind := range v1.PackageKinds() {
		// One expression may check at most two permissions: the API server limits its cost.
		for _, verb := range []string{"create", "update", "delete"} {
			f.Validations = append(f.Validations, concerning("kinds", kind, verb, resourceOf(kind),
				fmt.Sprintf("A transaction creates, updates and deletes packages. One with a %s", kind)))
		}
		f.Validations = append(f.Validations, concerning("guarded", kind, "update", resourceOf(v1.RevisionKind(kind)),
			fmt.Sprintf("The annotations %s of packages are consents, safeguards, or sources of images. A transaction that sets them on a %s",
				strings.Join(g.guardedKeys(), ", "), kind)))
	}
	return f
}

// user returns the expression for the user whom a transaction names, or "".
func user(object string) string {
	return fmt.Sprintf("%s.metadata.?annotations[?%s].orValue('')", object, quote(AnnotationUser))
}

// reports is the condition that a request writes the status.
const reports = `request.?subResource.orValue("") == "status"`

// concerning returns the validation that a transaction has no package of a kind in a variable, or its identity a
// permission.
func concerning(variable, kind, verb, resource, message string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression: fmt.Sprintf("!(variables.reports || %s in variables.%s) || authorizer.group(%q).resource(%q).check(%q).allowed()",
			quote(kind), variable, v1.Group, resource, verb),
		Message: fmt.Sprintf(
			"%s, or a write of the status of transactions, needs the permission to %s %s.%s.", message, verb, resource, v1.Group,
		),
	}
}

// resourceOf returns the resource of a kind of the package API.
func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// isIn returns the condition that annotations change a protection.
func (g Guarded) isIn(annotations string) string {
	conditions := []string{
		fmt.Sprintf("%s.exists(key, key in %[2]s && %[2]s[key] != '')", list(g.keys()), annotations),
		fmt.Sprintf("%s.exists(key, key in %s)", list(g.Sources), annotations),
	}
	for _, s := range g.Safeguards {
		conditions = append(
			conditions, fmt.Sprintf("%[1]s in %[2]s && %[2]s[%[1]s] != %[3]s", quote(s.Annotation), annotations, quote(s.Value)),
		)
	}
	return strings.Join(conditions, " || ")
}

// guardedKeys returns the keys of all guarded annotations.
func (g Guarded) guardedKeys() []string {
	out := g.keys()
	for _, s := range g.Safeguards {
		out = append(out, s.Annotation)
	}
	return append(out, g.Sources...)
}
