// Package fence builds ValidatingAdmissionPolicies that deny some identities the writes of some objects,
// regardless of RBAC.
//
// The package is pure. [Runtimes] is the fence of package runtimes; package crossplane has the one of Crossplane core.
package fence

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fence is a policy that applies to each write that its conditions and one of its rules match.
type Fence struct {
	// Name is the name of the policy and of its binding.
	Name string
	// Condition selects the requests of the fenced identities.
	Condition admissionv1.MatchCondition
	// Rules select the objects.
	Rules       []admissionv1.Rule
	Variables   []admissionv1.Variable
	Validations []admissionv1.Validation
}

// Objects returns the policy and its binding. Requests that the policy cannot evaluate are denied.
func (f Fence) Objects() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	rules := make([]admissionv1.NamedRuleWithOperations, len(f.Rules))
	for i, rule := range f.Rules {
		rule.Scope = new(admissionv1.AllScopes)
		rules[i].RuleWithOperations = admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}, Rule: rule,
		}
	}
	validations := make([]admissionv1.Validation, len(f.Validations))
	for i, v := range f.Validations {
		v.Reason = new(metav1.StatusReasonForbidden)
		validations[i] = v
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			// The API server adds the defaults of these fields: with them, the live policy equals this one.
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy: new(admissionv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: rules,
			},
			MatchConditions: []admissionv1.MatchCondition{f.Condition},
			Variables:       f.Variables,
			Validations:     validations,
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: f.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return policy, binding
}
