package errcodes_test

import (
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// ends are the classes of the codes with which a reconciliation of a revision ends, by how the manager reacts.
var ends = map[string][]string{
	"final": {"InvalidRuntimeDefaults", "NoProgram", "NoServedVersion", "ObjectRejected"},
	"refusal": {
		"AdmissionDenied", "AggregatedAPI", "BreaksObjects", "ForeignOwner", "ImmutableField", "NameTaken", "ObjectDeleting",
		"StoredVersionInUse",
	},
	"approval": {"NeedsAdoption", "PermissionEscalation", "PermissionIncrease", "WebhooksNotAllowed"},
	"retried": {
		"CRDNotFound", "ContentUnusable", "CrossplaneVersion", "DependencyComing", "DependencyMissing", "DependencyName",
		"DependencyVersion",
		"FieldsDropped", "Forbidden", "ForeignManager", "GeneratedObjectRejected", "KindNotServed", "ObjectMoved",
		"PartlyWritten", "PermissionMissing",
		"PermissionPolicyUnreadable", "PlanInterrupted", "QuotaExceeded", "RolledBack", "RuntimeConfigNotFound",
		"ServerUnavailable",
		"WebhookNotServing", "WebhookOutOfReach",
	},
	"awaits a change": {
		"ConversionWithoutRuntime", "InvalidCommonMetadata", "InvalidPermissionPolicy", "InvalidPermissions",
		"KindNotInstallable", "PackageNameTooLong",
		"PermissionDenied", "ReservedDefinition", "SharedWebhook",
	},
}

// Each code that can end an installation belongs to the class that decides when it is tried again: a new code needs a
// decision.
func TestCodesThatEndAnInstallationAreClassified(t *testing.T) {
	for _, c := range slices.Concat(
		apply.Codes(), crossplane.Codes(), graph.Codes(), rbac.Codes(), revision.Codes(), runtime.Codes(),
		runtimedefaults.Codes(), webhooks.Codes(), []errcode.Code{check.ErrUnserved},
	) {
		class := classOf(c)
		if !slices.Contains(ends[class], c.Name) {
			t.Errorf("%s: the class is %q, and the table does not list it there", c.Name, class)
		}
	}
}

func classOf(c errcode.Code) string {
	switch {
	case c.Final:
		return "final"
	case c.Refusal:
		return "refusal"
	case c.Approval:
		return "approval"
	case c.Class.Retry:
		return "retried"
	}
	return "awaits a change"
}

// A final failure depends only on the content, and a refusal is tried again.
func TestClassesOfCodesAreConsistent(t *testing.T) {
	for _, c := range errcodes.All() {
		if c.Final && !errcode.IsOfContent(c.New(nil, "x")) {
			t.Errorf("%s is final, but of the class %s, which depends on more than the content", c.Name, c.Class.Name)
		}
		if c.Refusal && !c.Class.Retry {
			t.Errorf("%s is a refusal, but its class %s is not tried again", c.Name, c.Class.Name)
		}
		if c.Final && c.Refusal || c.Approval && (c.Final || c.Refusal) {
			t.Errorf("%s has several classes", c.Name)
		}
	}
}
