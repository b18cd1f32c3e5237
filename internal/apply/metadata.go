package apply

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// fewObjects is the maximum number of objects of a kind that are read one by one. A list of the whole
	// kind is cheaper for more objects.
	fewObjects = 8
	// pageSize bounds the memory for a response.
	pageSize = "500"
	// listTries is the number of attempts for a list whose continue token expires.
	listTries = 3
)

// Metadata returns the metadata of the objects that exist. It sends one paginated list for each kind, or one
// call for each object of a kind with few objects.
//
// If the cluster does not serve a kind, the error is KindNotServed, and the result contains the objects of the other
// kinds: such an object cannot be written, and does not exist for a caller that releases it. Every error has a code.
func (c *Cluster) Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	collections, err := byCollection(refs)
	if err != nil {
		return nil, err
	}
	live := make(map[plan.Ref]plan.Live, len(refs))
	var unknown []string
	for _, path := range slices.Sorted(maps.Keys(collections)) {
		refs := collections[path]
		err := c.read(ctx, path, refs, live)
		if errors.Is(err, ErrKindNotServed) {
			unknown = append(unknown, kind(refs[0]))
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	if len(unknown) > 0 {
		return live, ErrKindNotServed.New(
			errors.New("the cluster does not serve it"), "read objects of the kind %s", strings.Join(unknown, ", "),
		)
	}
	return live, nil
}

// Owned returns the owner references of the objects of a kind that have owners. The name in the reference of the kind
// is empty.
func (c *Cluster) Owned(ctx context.Context, of plan.Ref) (Owned, error) {
	folder, err := collection(of)
	if err != nil {
		return nil, err
	}
	out := Owned{} // A restarted list repeats objects.
	err = each(ctx, c, folder, func(p partial) {
		if len(p.Metadata.OwnerReferences) > 0 {
			ref := of
			ref.Name = p.Metadata.Name
			out[ref] = p.Metadata.OwnerReferences
		}
	})
	if err != nil {
		return nil, classify(err, "list objects of the kind %s", kind(of))
	}
	return out, nil
}

// Owned are the owner references of objects.
type Owned map[plan.Ref][]metav1.OwnerReference

// By returns the objects with a matching owner, in order.
func (o Owned) By(matches func(metav1.OwnerReference) bool) []plan.Ref {
	var refs []plan.Ref
	for ref, owners := range o {
		if slices.ContainsFunc(owners, matches) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, plan.Ref.Compare)
	return refs
}

// ContentKinds are the kinds of the objects that packages contain and own, as references without a name.
var ContentKinds = []plan.Ref{
	plan.DefinitionRef(""),
	{APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition"},
	{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition"},
	{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceDefinition"},
	{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceActivationPolicy"},
	{APIVersion: "ops.crossplane.io/v1alpha1", Kind: "Operation"},
	{APIVersion: "ops.crossplane.io/v1alpha1", Kind: "CronOperation"},
	{APIVersion: "ops.crossplane.io/v1alpha1", Kind: "WatchOperation"},
	{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
	{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
}

// OwnedContent returns the owner references of all objects of ContentKinds that have owners. Unlisted are the kinds
// that the client may not list.
func (c *Cluster) OwnedContent(ctx context.Context) (owned Owned, unlisted []plan.Ref, err error) {
	owned = Owned{}
	for _, of := range ContentKinds {
		objects, err := c.Owned(ctx, of)
		switch {
		case errors.Is(err, ErrForbidden):
			unlisted = append(unlisted, of)
		case errors.Is(err, ErrKindNotServed): // The kind has no objects.
		case err != nil:
			return nil, nil, err
		}
		maps.Copy(owned, objects)
	}
	return owned, unlisted, nil
}

// kind returns the kind of an object for messages.
func kind(ref plan.Ref) string { return ref.Kind + " of " + ref.APIVersion }

func byCollection(refs []plan.Ref) (map[string][]plan.Ref, error) {
	out := map[string][]plan.Ref{}
	for _, ref := range refs {
		path, err := collection(ref)
		if err != nil {
			return nil, err
		}
		out[path] = append(out[path], ref)
	}
	return out, nil
}

// read adds the existing objects of one kind to live.
func (c *Cluster) read(ctx context.Context, path string, refs []plan.Ref, live map[plan.Ref]plan.Live) error {
	if len(refs) > fewObjects {
		return c.list(ctx, path, refs, live)
	}
	for _, ref := range refs {
		l, err := c.metadataOf(ctx, path, ref)
		if apierrors.IsNotFound(err) && !notServed(err) {
			continue
		}
		if err != nil {
			return classify(err, "read %s %s", ref.Kind, ref.Name)
		}
		live[ref] = l
	}
	return nil
}

// metadataOf reads the metadata of one object.
func (c *Cluster) metadataOf(ctx context.Context, path string, ref plan.Ref) (plan.Live, error) {
	raw, err := c.get(ctx, metadataObject, nil, path, ref.Name)
	if err != nil {
		return plan.Live{}, err
	}
	var m partial
	if err := json.Unmarshal(raw, &m); err != nil {
		return plan.Live{}, err
	}
	return m.live(ref), nil
}

// list reads all objects of one kind and keeps the requested ones.
func (c *Cluster) list(ctx context.Context, path string, refs []plan.Ref, live map[plan.Ref]plan.Live) error {
	wanted := make(map[string]plan.Ref, len(refs))
	for _, ref := range refs {
		wanted[ref.Name] = ref
	}
	for next, tries := "", 1; ; {
		var err error
		next, err = c.page(ctx, path, next, wanted, live)
		if apierrors.IsResourceExpired(err) && tries < listTries {
			// A list whose continue token has expired is restarted.
			next = ""
			tries++
			clear(live)
			continue
		}
		if err != nil {
			return classify(err, "list objects of the kind %s", kind(refs[0]))
		}
		if next == "" {
			return nil
		}
	}
}

// page reads one page of a list, and returns the continue token.
func (c *Cluster) page(
	ctx context.Context, path, from string, wanted map[string]plan.Ref, live map[plan.Ref]plan.Live,
) (next string, err error) {
	params := map[string]string{"limit": pageSize}
	if from != "" {
		params["continue"] = from
	}
	raw, err := c.get(ctx, metadataList, params, path)
	if err != nil {
		return "", err
	}
	var page struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []partial `json:"items"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return "", err
	}
	for i := range page.Items {
		if ref, ok := wanted[page.Items[i].Metadata.Name]; ok {
			live[ref] = page.Items[i].live(ref)
		}
	}
	return page.Metadata.Continue, nil
}
