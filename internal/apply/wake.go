package apply

import (
	"context"
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply/limiter"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// installing is the reason of the condition Established after the names are accepted and before the kind
	// is served.
	installing = "Installing"
	// askedAgain replaces the message of that condition.
	askedAgain = "the initial names have been accepted, and the API server was triggered to continue"
)

// Wake makes the API server complete the establishment of a CRD.
//
// An API server that stops between accepting the names of a CRD and establishing it does not resume after a restart
// until the CRD changes, or for five minutes (k8s.io/apiextensions-apiserver, customresource_handler.go: only an update
// event reaches the establishing controller). Wake therefore changes the message of the condition; the API server
// writes its own message again in the next step. A CRD in any other state is not changed.
func (c *Cluster) Wake(ctx context.Context, name string) error {
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, definitionsPath, name)
	if err != nil {
		return classify(err, "read CustomResourceDefinition %s", name)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &crd); err != nil {
		return classify(err, "read CustomResourceDefinition %s", name)
	}
	conditions := crd.Status.Conditions
	at := slices.IndexFunc(conditions, func(cond apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionFalse &&
			cond.Reason == installing
	})
	if at < 0 {
		return nil
	}
	// An unchanged message would not be a change.
	if was := &conditions[at].Message; *was == askedAgain {
		*was = ""
	} else {
		*was = askedAgain
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return classify(err, "wake CustomResourceDefinition %s", name)
	}
	_, _, err = c.call(ctx, limiter.WriteMetadata, func() (*rest.Request, int, error) {
		req := c.rest.Patch(types.MergePatchType).AbsPath(definitionsPath, name, "status").SetHeader("Accept", metadataObject)
		return req.Body(body), len(body), nil
	})
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Another client's change has the same effect.
		return nil
	}
	return classify(err, "wake CustomResourceDefinition %s", name)
}
