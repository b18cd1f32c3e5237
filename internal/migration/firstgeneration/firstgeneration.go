// Package firstgeneration moves a cluster from a package manager of the first generation, such as the one of Crossplane
// v0.12, to the manager of xpkg. The install objects stay, or become those of packages.crossplane.io, and a Provider
// takes over the CRDs of each package. No custom resource is read or written.
package firstgeneration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Migration moves the packages of a cluster.
type Migration struct {
	// Client is a client for all kinds that the migration reads.
	Client client.Client
	// Cluster writes the CRDs of the package API.
	Cluster *apply.Cluster
	// Content reads the packages. Without it, problems with their content are not found before the migration.
	Content state.Content
	// Manager are the options of the manager to install.
	Manager bootstrap.Options
	// WithoutManager leaves the start of the manager to the user, as on a local control plane.
	WithoutManager bool
	// FormerManagers are the names of the Deployments of the former package manager in the namespace of the manager. Empty
	// means the names of the charts of Crossplane.
	FormerManagers []string
	// Replacements are references of packages that replace others, or CRDs, as install objects name them.
	Replacements map[string]string
	// Poll is the pause between two reads of a state that the migration waits for. Zero means a second.
	Poll time.Duration
}

// fieldManager is the field manager of the changes.
const fieldManager = client.FieldOwner("xpkg-migrate")

func (m *Migration) poll() time.Duration {
	if m.Poll == 0 {
		return time.Second
	}
	return m.Poll
}

// Plan reads the cluster and plans the migration. It fails with MigrationRefused if something cannot be moved.
func (m *Migration) Plan(ctx context.Context) (*migration.Plan, error) {
	s, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	m.readContents(ctx, s)
	m.Manager.FirstGeneration = true
	for _, namespace := range s.otherNamespaces() {
		m.Manager.Args = append(m.Manager.Args, "--cluster-install-namespace="+namespace)
	}
	manifests, err := bootstrap.Manifests(m.Manager)
	if err != nil {
		return nil, err
	}
	if err := m.checkManifests(ctx, s, manifests); err != nil {
		return nil, err
	}
	if err := migration.Refuse(s.findings()); err != nil {
		return nil, err
	}
	steps := []*migration.Step{
		m.managersStep(s), m.controllersStep(s), m.apiStep(s, manifests), m.installsStep(s), m.definitionsStep(s),
	}
	if !m.WithoutManager {
		steps = append(steps, m.startStep(s, manifests))
	}
	remains, err := m.remainsStep(ctx, s)
	if err != nil {
		return nil, err
	}
	return &migration.Plan{
		Steps: append(steps, m.activationStep(s), remains), Notes: append(m.notes(s), m.unrecorded(s)...),
	}, nil
}

// maxStacks limits the Stacks in a note.
const maxStacks = 10

// notes returns the sentences that a user has to know.
func (m *Migration) notes(s *snapshot) []string {
	var out []string
	if m.WithoutManager {
		out = append(
			out,
			"Start the manager again, such as with `xpkg up`: it serves packages.crossplane.io in a cluster that has been moved.",
		)
	}
	if names := s.otherNamespaces(); len(names) > 0 {
		out = append(out,
			fmt.Sprintf("The users of %s can install packages for the whole cluster: ClusterPackageInstalls are there. To end this, move these objects to %s and remove --cluster-install-namespace.",
				strings.Join(names, ", "), s.namespace))
	}
	if n := len(s.installs); n > 0 {
		out = append(out, wording.Count(n, "installation")+
			" of packages.crossplane.io go on. `xpkg convert` makes packages of today from their images, and the file of --replace names them for this command.")
	}
	if n := len(s.stacks); n > 0 {
		out = append(out,
			fmt.Sprintf("%s without an install object will not be moved, and nothing maintains the controllers: %s. For each, create a Package of %s with its spec, and delete the Stack with its Deployment.",
				wording.Count(n, "Stack"), wording.Few(s.stacks, maxStacks, ", "), packagesv1alpha1.Group))
	}
	return append(out, "The roles with which the former package manager let users write custom resources stay.")
}

// describe returns the kind, the namespace and the name of an install object.
func (in *install) describe() string {
	return fmt.Sprintf("%s %s/%s", in.kind, in.namespace, in.name)
}

// isCluster reports whether an install object installs its package for the whole cluster.
func (in *install) isCluster() bool { return in.target() == packagesv1alpha1.ClusterPackageInstallKind }
