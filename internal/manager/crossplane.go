package manager

import (
	"context"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// ErrCoreVersion is the failure of a cluster that does not say which version of
// Crossplane it runs.
var ErrCoreVersion = failure.Register(failure.Code{
	Name: "CrossplaneVersion", Class: failure.Unavailable,
	Cause: "The package is made for certain versions of Crossplane, and the cluster cannot be asked which one runs.",
	Fix:   "Allow the package manager to read Deployments in its namespace, or start it with --crossplane-version.",
})

// crossplane knows which version of Crossplane packages are to fit: the one that
// was configured, or else the one that runs in the cluster.
type crossplane struct {
	configured string
	reader     client.Reader
	namespace  string
	now        func() time.Time

	mu      sync.Mutex
	found   string
	foundAt time.Time
}

const (
	// coreDeployment is the name of Crossplane's Deployment, and coreVersion the
	// label with its version (Crossplane's Helm chart).
	coreDeployment = "crossplane"
	coreVersion    = "app.kubernetes.io/version"
	// coreAge is for how long a version that was found is believed.
	coreAge = time.Minute
)

// admits refuses a package that is not made for the version of Crossplane. Where
// there is none every package fits.
func (c *crossplane) admits(ctx context.Context, meta format.Meta) error {
	if meta.Crossplane == "" {
		return nil
	}
	version, err := c.version(ctx)
	if err != nil || version == "" {
		return err
	}
	return meta.Compatible(version)
}

// version is empty where no Crossplane runs.
func (c *crossplane) version(ctx context.Context) (string, error) {
	if c.configured != "" {
		return c.configured, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.foundAt.IsZero() && c.now().Sub(c.foundAt) < coreAge {
		return c.found, nil
	}
	var d appsv1.Deployment
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: coreDeployment}, &d)
	switch {
	case apierrors.IsNotFound(err):
		d = appsv1.Deployment{}
	case err != nil:
		return "", ErrCoreVersion.New(err, "cannot tell which version of Crossplane runs")
	}
	c.found, c.foundAt = versionOf(d), c.now()
	return c.found, nil
}

// versionOf reads the version of Crossplane off its Deployment: its label, or else
// the tag of its image.
func versionOf(d appsv1.Deployment) string {
	if v := d.Labels[coreVersion]; v != "" {
		return v
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		ref, err := oci.ParseReference(container.Image, oci.ParseOptions{DefaultRegistry: "docker.io"})
		if err == nil && strings.HasSuffix(ref.Repository, "crossplane") {
			return ref.Tag
		}
	}
	return ""
}
