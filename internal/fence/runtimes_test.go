package fence

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// A fence is recognized for a manager with any names, and not after a change of any of its parts.
func TestIsRuntimes(t *testing.T) {
	for _, m := range []Manager{
		{Namespace: "crossplane-system", Lease: "xpkg-manager"},
		{Namespace: "mine", Lease: `a "quoted" \name`, PolicyConfigMap: "policy"},
	} {
		policy, binding := Runtimes(m).Objects()
		if !IsRuntimes(m.Namespace, policy, binding) {
			t.Errorf("the fence of %+v is not recognized", m)
		}
		if IsRuntimes("other", policy, binding) {
			t.Errorf("the fence of %+v is that of a manager in another namespace", m)
		}
	}
	m := Manager{Namespace: "crossplane-system", Lease: "xpkg-manager", PolicyConfigMap: "policy"}
	changes := map[string]func(*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding){
		"all rules": func(p *admissionv1.ValidatingAdmissionPolicy, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.Validations = []admissionv1.Validation{{Expression: "true"}}
		},
		"a condition": func(p *admissionv1.ValidatingAdmissionPolicy, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.MatchConditions[0].Expression = "false"
		},
		"the resources": func(p *admissionv1.ValidatingAdmissionPolicy, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.MatchConstraints.ResourceRules = p.Spec.MatchConstraints.ResourceRules[1:]
		},
		"a variable": func(p *admissionv1.ValidatingAdmissionPolicy, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.Variables[0].Expression = "dyn(object)"
		},
		"the actions": func(_ *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
		},
		"the policy of the binding": func(
			_ *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding,
		) {
			b.Spec.PolicyName = "other"
		},
	}
	policy, _ := Runtimes(m).Objects()
	for i, v := range policy.Spec.Validations {
		changes[v.Message] = func(p *admissionv1.ValidatingAdmissionPolicy, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.Validations[i].Expression = "true"
		}
	}
	for name, change := range changes {
		policy, binding := Runtimes(m).Objects()
		change(policy, binding)
		if IsRuntimes(m.Namespace, policy, binding) {
			t.Errorf("a fence is recognized after a change: %s", name)
		}
	}
}
