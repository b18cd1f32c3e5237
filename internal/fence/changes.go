package fence

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

const (
	// ApprovalsName is the name of the fence of approvals.
	ApprovalsName = "xpkg-approvals"
	// ChangesName is the name of the fence of changes.
	ChangesName = "xpkg-changes"
)

// AnnotationApprovals contains the approvals of a Transaction: lines with the digest of a plan, a space, and the name
// of the user who has approved it.
const AnnotationApprovals = "xpkg.dev/approvals"

// maxApprovals limits the lines of [AnnotationApprovals], which the fence compares with each other.
const maxApprovals = 200

// Approvals returns the fence of approvals of Transactions. An identity adds and removes only lines with its own name.
// It adds them only with the permission to approve that Transaction, and not to a new one.
func Approvals() Fence {
	const digestLength = len("sha256:") + 64
	return Fence{
		Name: ApprovalsName, Purpose: "denies approvals in the name of others",
		Risk: "transactions that need an approval are refused",
		Conditions: []admissionv1.MatchCondition{{
			Name: "approves", Expression: approvals("object") + " != " + approvals("oldObject"),
		}},
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rules: []admissionv1.Rule{{
			APIGroups: []string{v1alpha1.Group}, APIVersions: []string{"*"},
			Resources: []string{"transactions", "transactions/status"},
		}},
		Variables: []admissionv1.Variable{
			{Name: "now", Expression: approvals("object") + `.split("\n").filter(line, line != "")`},
			{Name: "old", Expression: approvals("oldObject") + `.split("\n").filter(line, line != "")`},
			{Name: "isSmall", Expression: fmt.Sprintf(
				"variables.now.size() <= %[1]d && variables.old.size() <= %[1]d", maxApprovals,
			)},
			{Name: "added", Expression: "variables.now.filter(line, !(line in variables.old))"},
			{Name: "removed", Expression: "variables.old.filter(line, !(line in variables.now))"},
		},
		Validations: []admissionv1.Validation{
			{
				Expression: `request.operation == "UPDATE"`,
				Message:    "A new transaction has no approvals: remove the annotation " + AnnotationApprovals + ".",
			},
			{
				Expression: "variables.isSmall",
				Message: fmt.Sprintf("The annotation %s has more than %d lines: remove your approvals of former plans.",
					AnnotationApprovals, maxApprovals),
			},
			{
				Expression: fmt.Sprintf("!variables.isSmall || variables.added.all(line, line.matches('^sha256:[0-9a-f]{64} ') && "+
					"line.substring(%d) == request.userInfo.username)", digestLength+1),
				Message: "An approval is a line with the digest of the plan, a space, and the name of the user who writes it. " +
					"Use `xpkg approve transaction` with the name of the transaction.",
			},
			{
				Expression: fmt.Sprintf("!variables.isSmall || variables.removed.all(line, line.size() > %[1]d && "+
					"line.substring(%[1]d) == request.userInfo.username)", digestLength+1),
				Message: "Approvals of other users cannot be removed.",
			},
			{
				Expression: fmt.Sprintf("!variables.isSmall || variables.added.size() == 0 || authorizer.group(%q)"+
					`.resource("transactions").name(object.metadata.name).check("approve").allowed()`, v1alpha1.Group),
				Message: "An approval of a transaction needs the permission to approve transactions." + v1alpha1.Group + ".",
			},
		},
	}
}

// approvals returns the expression for the approvals of a transaction, or "".
func approvals(object string) string {
	return fmt.Sprintf(
		"(%[1]s == null ? '' : %[1]s.metadata.?annotations[?%[2]s].orValue(''))", object, quote(AnnotationApprovals),
	)
}

// Changes returns the fence of changes of packages, which is in force while a ChangePolicy exists. It denies all
// identities but the manager the creation of packages, changes of their spec, and their deletion, also by the garbage
// collector after that of an owner.
//
// A policy with the ChangePolicy as its parameter would exist always. But an API server then denies all writes of
// packages, also those of the manager, for up to 30 seconds after the CRD of the parameter is created and after each of
// its own starts, and loads no such policy from a file.
func Changes(manager string) Fence {
	const advice = "A ChangePolicy exists: packages are changed by transactions, which start when it permits. " +
		"Use xpkg install, update or uninstall, which create one, or let a GitOps tool apply the Transaction that " +
		"`xpkg plan sync --lock xpkg.lock --transaction` prints."
	return Fence{
		Name: ChangesName, Purpose: "denies changes of packages that go around the ChangePolicy",
		Risk: "users and GitOps tools can change packages at any time",
		Conditions: []admissionv1.MatchCondition{{
			Name: "is-not-the-manager", Expression: "request.userInfo.username != " + quote(manager),
		}},
		Rules: []admissionv1.Rule{{
			APIGroups: []string{v1.Group}, APIVersions: []string{"*"},
			Resources: []string{"providers", "configurations", "functions"},
		}},
		Validations: []admissionv1.Validation{
			{Expression: `request.operation != "CREATE"`, Message: advice},
			{Expression: `request.operation != "UPDATE" || object.spec == oldObject.spec`, Message: advice},
			{Expression: `request.operation != "DELETE" || has(oldObject.metadata.deletionTimestamp)`, Message: advice},
		},
	}
}
