package desired

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// exemptGroups are the API groups whose requests are not sent to webhooks of packages: requests that
// uninstall, roll back or update a package, writes of Transactions, which return packages to their former
// state, and renewals of the Leases of the manager and the nodes. A webhook that denied such requests could
// not be removed.
var exemptGroups = []string{"coordination.k8s.io", "pkg.crossplane.io", "xpkg.dev"}

// exemptionExpression is false for requests of the exempt groups.
var exemptionExpression = `!(request.resource.group in ["` + strings.Join(exemptGroups, `", "`) + `"])`

// exemptionName is the name of the match condition of [exempt].
const exemptionName = "xpkg.dev/exempt"

// exempt adds a match condition to a webhook whose rules cover one of the exempt groups, so that the API server does
// not call it for them.
func exempt(webhook map[string]any) {
	rules, _ := webhook["rules"].([]any)
	if !slices.ContainsFunc(rules, coversExempt) {
		return
	}
	conditions, _ := webhook["matchConditions"].([]any)
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["name"] == exemptionName
	})
	webhook["matchConditions"] = append(conditions, map[string]any{
		"name": exemptionName, "expression": exemptionExpression,
	})
}

// coversExempt reports whether a rule of a webhook covers an exempt group.
func coversExempt(rule any) bool {
	fields, _ := rule.(map[string]any)
	groups, _ := fields["apiGroups"].([]any)
	return slices.ContainsFunc(groups, func(group any) bool {
		name, _ := group.(string)
		return mayCoverExempt(name)
	})
}

func mayCoverExempt(group string) bool { return group == "*" || slices.Contains(exemptGroups, group) }

// Exempts reports whether a webhook with these rules and match conditions never receives requests of the exempt groups.
func Exempts(
	rules []admissionregistrationv1.RuleWithOperations, conditions []admissionregistrationv1.MatchCondition,
) bool {
	covers := slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, mayCoverExempt)
	})
	return !covers || slices.Contains(conditions, admissionregistrationv1.MatchCondition{
		Name: exemptionName, Expression: exemptionExpression,
	})
}
