package author

import (
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// maxConsents limits the rules in a sentence about consents.
const maxConsents = 5

// consents returns what users have to consent to when they install a package, in sentences. A package that cannot be
// read as a whole has none.
func consents(pkg *xpkg.Package) []string {
	objects, err := desired.Of(pkg, desired.Options{})
	if err != nil {
		return nil
	}
	var out []string
	if rules, err := objects.OutsideWebhookRules(); err == nil && len(rules) > 0 {
		out = append(out, "users have to allow webhooks for resources that the package does not define (--allow-webhooks): "+
			wording.Few(webhooks.Strings(rules), maxConsents, ", "))
	}
	in := rbac.Input{
		Kind: string(pkg.Meta.Kind), Defined: objects.Defined(), Requests: pkg.Meta.PermissionRequests,
		SafeStart: pkg.Meta.HasCapability(xpkg.CapabilitySafeStart),
	}
	var requests []string
	for _, rule := range rbac.Escalating(nil, nil, nil, in) {
		requests = append(requests, rbac.DescribeEscalation(rule))
	}
	if len(requests) > 0 {
		out = append(out, "users have to approve permissions that amount to control of the cluster (`xpkg approve`): "+
			wording.Few(requests, maxConsents, "; "))
	}
	return out
}
