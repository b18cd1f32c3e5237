package tocore

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// managerName is the name of the Deployment of the manager.
const managerName = bootstrap.Name

// generationSince is the first version of core that computes the names of revisions from the generation of the package
// too.
const generationSince = "2.4.0-0"

// snapshot is the state of the cluster from which a plan is computed.
type snapshot struct {
	namespace string
	families  []family
	core      crossplane.Core
	version   string
	// fenced reports that a policy denies core the writes of packages. It also covers the accounts others.
	fenced bool
	others []types.NamespacedName
	// manager is nil if the manager has no Deployment.
	manager *appsv1.Deployment
	// pods is the number of its pods, and leads reports that a manager holds the Lease.
	pods  int
	leads bool
	// local reports that the holder is the manager of `xpkg up`.
	local bool
	lock  *v1beta1.Lock
	// transactions are the names of those that have not ended.
	transactions []string
	// deployments are the revisions that control an available Deployment.
	deployments map[types.UID]bool
}

func (m *mover) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{namespace: m.Namespace, lock: &v1beta1.Lock{}}
	packages, err := migration.ListPackages(ctx, m.Client)
	if err != nil {
		return nil, err
	}
	var transactions v1alpha1.TransactionList
	if err := m.Client.List(ctx, &transactions); err != nil && !apimeta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list transactions: %w", err)
	}
	for _, t := range transactions.Items {
		if !t.Status.Phase.IsFinal() || len(t.Finalizers) > 0 {
			s.transactions = append(s.transactions, t.Name)
		}
	}
	for _, p := range packages {
		s.families = append(s.families, family{p})
	}
	if err := m.Client.Get(ctx, types.NamespacedName{Name: v1beta1.LockName}, s.lock); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the Lock: %w", err)
	}
	if s.core, err = crossplane.ReadCore(ctx, m.Client, m.Client, m.Namespace); err != nil {
		return nil, fmt.Errorf("read Crossplane core: %w", err)
	}
	if s.version, err = crossplane.Version(ctx, m.Client, m.Namespace); err != nil {
		return nil, err
	}
	if s.fenced, s.others, err = m.readFence(ctx); err != nil {
		return nil, err
	}
	if err := m.readManager(ctx, s); err != nil {
		return nil, err
	}
	return s, m.readDeployments(ctx, s)
}

// readManager reads the Deployment of the manager, its pods and its Lease.
func (m *mover) readManager(ctx context.Context, s *snapshot) error {
	d := &appsv1.Deployment{}
	err := m.Client.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: managerName}, d)
	switch {
	case err == nil:
		s.manager = d
		var pods corev1.PodList
		if err := m.Client.List(
			ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels),
		); err != nil {
			return fmt.Errorf("list the pods of the manager: %w", err)
		}
		s.pods = len(pods.Items)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read the Deployment of the manager: %w", err)
	}
	var lease coordinationv1.Lease
	err = m.Client.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: leader.DefaultLease}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the Lease of the manager: %w", err)
	}
	s.leads = err == nil && leader.IsRenewed(lease, m.Now())
	s.local = s.leads && ptr.Deref(lease.Spec.HolderIdentity, "") == leader.LocalIdentity
	return nil
}

// readDeployments reads the Deployments of runtimes.
func (m *mover) readDeployments(ctx context.Context, s *snapshot) error {
	var all appsv1.DeploymentList
	if err := m.Client.List(ctx, &all, client.InNamespace(m.Namespace)); err != nil {
		return fmt.Errorf("list the Deployments of %s: %w", m.Namespace, err)
	}
	s.deployments = map[types.UID]bool{}
	for _, d := range all.Items {
		for _, owner := range d.OwnerReferences {
			if flag(owner.Controller) {
				s.deployments[owner.UID] = isAvailable(d)
			}
		}
	}
	return nil
}

// isAvailable reports whether a Deployment has the pods that it should have.
func isAvailable(d appsv1.Deployment) bool {
	if ptr.Deref(d.Spec.Replicas, 1) == 0 {
		return true
	}
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// named reports whether all revisions have the names of core. While the manager runs, no runtime of a former revision
// may run either.
func (s *snapshot) named() bool {
	if s.managerStopped() {
		return s.coreManages() || len(s.renames()) == 0
	}
	return s.unnamed() == ""
}

// managerStopped reports whether no manager writes.
func (s *snapshot) managerStopped() bool {
	return !s.leads && s.pods == 0 && (s.manager == nil || ptr.Deref(s.manager.Spec.Replicas, 1) == 0)
}

// coreManages reports whether core manages the packages.
func (s *snapshot) coreManages() bool {
	return s.managerStopped() && !s.fenced && s.core.Runs && s.core.Writes && s.core.RunsRuntimes
}

// names returns the value of revision.AnnotationNames for the version of core.
func (s *snapshot) names() string {
	v, since := version.Parse(s.version), version.Parse(generationSince)
	if v.Usable() && v.Compare(&since) < 0 {
		return revision.NamesOfCoreBefore2_4
	}
	return revision.NamesOfCore
}

// nameIn returns the name of the current revision of a package in core.
func (s *snapshot) nameIn(f family) string {
	return revision.CoreName(f, f.digest(), s.names())
}

// digest returns the digest of the active revision, or of the current content while none is active.
func (f family) digest() string {
	if active := f.Active(); active != nil {
		return active.RevisionSpec().Digest
	}
	return f.PackageStatus().ResolvedDigest
}

// isRenamed reports whether the active revision of a package has the name of core, as far as its content is known. The
// CRDs of core drop the digest of a revision.
func (s *snapshot) isRenamed(f family) bool {
	active := f.Active()
	return f.digest() == "" || active != nil && active.GetName() == s.nameIn(f)
}

// isBeingRenamed reports whether a former migration has requested another name for the revision of a package.
func (s *snapshot) isBeingRenamed(f family) bool {
	return f.GetAnnotations()[revision.AnnotationNames] == s.names()
}

// renames describes the packages whose revision has another name in core.
func (s *snapshot) renames() []string {
	var out []string
	for _, f := range s.families {
		if !s.isRenamed(f) {
			out = append(out, fmt.Sprintf("%s: %s becomes %s", f.Name(), f.PackageStatus().CurrentRevision, s.nameIn(f)))
		}
	}
	return out
}
