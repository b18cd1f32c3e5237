package apply

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// recognize checks whether an object already has the state of a change. The response to an earlier attempt
// was lost, and the last attempt was refused because the object exists or has changed, so the earlier one was
// probably carried out. Otherwise it returns refusal.
func (c *Cluster) recognize(ctx context.Context, path string, ch plan.Change, refusal error) (plan.Written, error) {
	live, err := c.metadataOf(ctx, path, ch.Ref)
	switch {
	case apierrors.IsNotFound(err):
		return plan.Written{}, refusal
	case err != nil:
		return plan.Written{}, err
	case !done(ch, live):
		return plan.Written{}, refusal
	}
	w := plan.Written{UID: live.UID, Generation: live.Generation}
	if live.OthersWrote {
		// If another client has changed the object since, only the managed fields show it, because the
		// generation already includes the change.
		w.Generation = 0
	}
	return w, nil
}

// done reports whether a live object equals the result of a change.
func done(ch plan.Change, live plan.Live) bool {
	if live.Deleting || ch.UID != "" && ch.UID != live.UID {
		return false
	}
	if !ch.MetadataOnly && ch.Annotations[plan.ContentDigestAnnotation] == "" {
		return false // The content cannot be distinguished from another client's.
	}
	return slices.EqualFunc(ch.Owners, live.Owners, sameOwner) &&
		holds(live.Labels, ch.Labels, ch.RemoveLabels) && holds(live.Annotations, ch.Annotations, ch.RemoveAnnotations)
}

func sameOwner(a, b metav1.OwnerReference) bool {
	is := func(b *bool) bool { return b != nil && *b }
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		is(a.Controller) == is(b.Controller) && is(a.BlockOwnerDeletion) == is(b.BlockOwnerDeletion)
}

// holds reports whether added keys exist with their values, and removed ones do not.
func holds(live, put map[string]string, removed []string) bool {
	for k, v := range put {
		if is, ok := live[k]; !ok || is != v {
			return false
		}
	}
	return !slices.ContainsFunc(removed, func(k string) bool {
		_, there := live[k]
		return there
	})
}
