package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"
)

// The API server decides with validation.Covers which roles a client may create.
func TestMissingAgreesWithValidationCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := rulesOf(t, "have"), rulesOf(t, "want")
		missing := Missing(have, want)
		covered, uncovered := validation.Covers(have, want)
		if covered != (missing == nil) {
			t.Fatalf("the API server finds %v uncovered, and Missing returns %v", uncovered, missing)
		}
		if all, more := validation.Covers(missing, uncovered); !all {
			t.Fatalf("Missing returns %v without %v", missing, more)
		}
		if all, more := validation.Covers(uncovered, missing); !all {
			t.Fatalf("Missing returns %v, and the API server allows %v", missing, more)
		}
	})
}

func TestOneRuleCoversAnotherAsInValidationCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := ruleOf(t), ruleOf(t)
		covered, uncovered := validation.Covers([]rbacv1.PolicyRule{have}, []rbacv1.PolicyRule{want})
		if got := coversRule(have, want); got != covered {
			t.Fatalf("coversRule returns %v, and the API server finds %v uncovered", got, uncovered)
		}
	})
}
