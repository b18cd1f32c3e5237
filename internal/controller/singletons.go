package controller

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xpkg-dev/xpkg/internal/controller/lock"
	"github.com/xpkg-dev/xpkg/internal/controller/orphans"
	"github.com/xpkg-dev/xpkg/internal/controller/rootca"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// setupSingletons registers the controllers of the Lock, of the CA, and of orphans.
func (w *world) setupSingletons(o Options, mgr ctrl.Manager) error {
	var upgrades graph.Policy
	var removal graph.RemovalPolicy
	if s := w.settling; s != nil {
		upgrades, removal = s.upgrades(), s.Removal
	}
	err := (&lock.Reconciler{
		Client: w.client, Dependencies: w.needs, Writes: w.writes, Log: w.log, InUse: w.contentsInUse(o),
		Announcements: lock.Announcements(upgrades, removal, w.permissions != nil && w.permissions.Namespaced),
	}).SetupWithManager(mgr)
	if len(w.programs.used()) > 0 {
		ca := rootca.Reconciler{Live: w.live, Certificates: w.certificates, Namespace: w.namespace, Now: w.now, Log: w.log}
		err = errors.Join(err, ca.SetupWithManager(mgr))
	}
	if err != nil || removal != graph.RemoveOrphans {
		return err
	}
	cluster, err := planner.NewCluster(mgr.GetConfig())
	if err != nil {
		return err
	}
	return orphans.New(orphans.Config{
		Client: w.client, Live: w.live, Cluster: cluster, Packages: w.packages(), Dependencies: w.needs, Events: w.events, Log: w.log, Now: w.now,
		RollbackWindow: w.gate.left,
	}).SetupWithManager(mgr)
}

// contentsInUse returns the function that marks contents as in use in the package cache.
func (w *world) contentsInUse(o Options) func([]oci.Digest) error {
	return func(contents []oci.Digest) error {
		if o.InUse == nil {
			return nil
		}
		return o.InUse(w.clusterID, contents)
	}
}
