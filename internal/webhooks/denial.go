package webhooks

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// denial matches the messages of the API server for a request that a webhook denied, or for which
// the call of a webhook failed.
var denial = lazyregexp.New(`(?:admission webhook|failed calling webhook) "([^"]+)"`)

// deniedBy returns the names of the webhooks that denied a request, from the message of its error.
func deniedBy(failure error) []string {
	var out []string
	if failure == nil {
		return out
	}
	for _, match := range denial().FindAllStringSubmatch(failure.Error(), -1) {
		out = append(out, match[1])
	}
	return out
}

// DeleteDenying deletes the webhook configurations of a package with a webhook that, according to
// the error of a write, denied the write, and reports whether there was one. Otherwise an update
// that corrects the webhook could not be installed.
func DeleteDenying(
	ctx context.Context, cluster *apply.Cluster, live client.Reader, set revision.Set, failure error,
) (deleted bool, err error) {
	names := deniedBy(failure)
	if len(names) == 0 {
		return false, nil
	}
	err = Delete(ctx, cluster, set, func(l plan.Live) bool {
		configuration := &unstructured.Unstructured{}
		configuration.SetGroupVersionKind(schema.FromAPIVersionAndKind(l.Ref.APIVersion, l.Ref.Kind))
		if err := live.Get(ctx, client.ObjectKey{Name: l.Ref.Name}, configuration); err != nil {
			return false
		}
		isDenying := slices.ContainsFunc(
			webhookNamesOf(configuration), func(name string) bool { return slices.Contains(names, name) },
		)
		deleted = deleted || isDenying
		return isDenying
	})
	return deleted, err
}

// webhookNamesOf returns the names of the webhooks of a configuration.
func webhookNamesOf(configuration *unstructured.Unstructured) []string {
	var out []string
	all, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range all {
		webhook, _ := w.(map[string]any)
		name, _ := webhook["name"].(string)
		out = append(out, name)
	}
	return out
}
