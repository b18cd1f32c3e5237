// Package apply carries out plans: one call for each object that changes and none for any other.
//
// Objects travel as JSON bytes. They are not decoded into typed structures, and responses are requested as metadata
// only, so memory does not grow with the size of schemas.
package apply

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply/limiter"
	"github.com/xpkg-dev/xpkg/internal/sharedread"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	metadataObject = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList   = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Cluster reads metadata of objects and writes objects as bytes. It is safe for concurrent use. All users share the
// measured limit of concurrent calls.
type Cluster struct {
	rest    rest.Interface
	limiter *limiter.Limiter
	dryRun  bool
	brake   Brake
	// served, services and composites are the discovery document, the APIServices and the XRDs, which all packages read.
	served      *sharedread.Read[discovery]
	services    *sharedread.Read[apiServices]
	composites  *sharedread.Read[[]partial]
	definitions *definitionWrites
	// rewritten is called with the number of custom resources of a CRD that a migration has rewritten. It can be nil.
	rewritten func(crd string, n int)
	// settles is the time after which all API servers store custom resources in a new storage version.
	settles time.Duration
}

// Recent is the age of a shared read that is as good as a new one where the object of interest was not written
// meanwhile: another client can change it as well between a new read and the next step.
const Recent = time.Second

// requestTimeout bounds one call, so that a server that does not respond does not block a worker. It is
// longer than the API server's own limit of a minute.
const requestTimeout = 70 * time.Second

// NewCluster returns a Cluster for a client configuration. It disables the rate limit of the client library:
// the Cluster limits concurrent calls, and the API server applies priority and fairness.
func NewCluster(cfg *rest.Config) (*Cluster, error) {
	c := rest.CopyConfig(cfg)
	c.QPS = -1
	c.Timeout = requestTimeout
	c.ContentType = runtime.ContentTypeJSON
	c.GroupVersion = &metav1.SchemeGroupVersion
	c.APIPath = "/apis"
	// The scheme is only needed to decode the Status of a refused call.
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return hearing{next} })
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("cluster client: %w", err)
	}
	return &Cluster{
		rest: client, limiter: limiter.New(),
		served: &sharedread.Read[discovery]{}, services: &sharedread.Read[apiServices]{},
		composites: &sharedread.Read[[]partial]{}, definitions: &definitionWrites{}, settles: plan.StorageSettles,
	}, nil
}
