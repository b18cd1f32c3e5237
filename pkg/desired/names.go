package desired

import "github.com/xpkg-dev/xpkg/pkg/xpkg"

// webhookNames returns the names of webhook configurations that Crossplane uses: crossplane-<kind>-<package>.
// If a package contains several of a kind, all but the first get the author's name as a suffix; Crossplane
// keeps only the last one.
type webhookNames struct {
	prefix string
	// seen holds the kinds that have occurred.
	seen map[string]bool
}

// of returns the name of an object in the cluster.
func (n *webhookNames) of(o xpkg.Object) string {
	if !o.IsWebhookConfiguration() {
		return o.Name
	}
	if n.seen[o.GVK.Kind] {
		return n.prefix + "-" + o.Name
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[o.GVK.Kind] = true
	return n.prefix
}
