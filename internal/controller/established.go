package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

const (
	// establishedPoll and establishedPause are the shortest and the longest pause
	// between two looks at whether the API server serves the new kinds, and
	// establishedWait is for how long one attempt looks before it reports how far it
	// has come.
	establishedPoll  = 50 * time.Millisecond
	establishedPause = 2 * time.Second
	establishedWait  = 20 * time.Second
)

// established waits until the API server serves every kind that the package
// defines: a revision whose kinds cannot be used yet is not healthy.
func (r *revisionReconciler) established(ctx context.Context, rev v1.PackageRevision, objects *desired.Objects) (ctrl.Result, verdict, error) {
	deadline, stall, pace := r.now().Add(establishedWait), stall{}, pace{}
	for {
		missing, err := r.missing(ctx, objects)
		if err != nil {
			return ctrl.Result{}, verdict{}, err
		}
		if len(missing) == 0 {
			rev.SetConditions(metav1.NewTime(r.now()), v1.RevisionHealthy())
			return ctrl.Result{}, healthy, nil
		}
		if stall.lasts(len(missing), r.now()) {
			if err := r.wake(ctx, missing); err != nil {
				return ctrl.Result{}, verdict{}, err
			}
		}
		if r.now().After(deadline) {
			return r.reportMissing(ctx, rev, missing, objects.Definitions())
		}
		select {
		case <-ctx.Done():
			return ctrl.Result{}, verdict{}, ctx.Err()
		case <-time.After(pace.pause(len(missing), r.now())):
		}
	}
}

// missing lists the definitions whose kinds the API server does not serve yet.
func (w *world) missing(ctx context.Context, objects *desired.Objects) ([]string, error) {
	if objects.Definitions() == 0 {
		return nil, nil
	}
	served, err := w.cluster.Served(ctx)
	return objects.Missing(served), err
}

// reportMissing says how far the API server has come.
func (r *revisionReconciler) reportMissing(ctx context.Context, rev v1.PackageRevision, missing []string, total int) (ctrl.Result, verdict, error) {
	why, err := r.cluster.WhyNotEstablished(ctx, missing[0])
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	message := fmt.Sprintf("NotEstablished: %d of %d CustomResourceDefinitions are established; waiting for %s: %s", total-len(missing), total, missing[0], why)
	rev.SetConditions(metav1.NewTime(r.now()), v1.RevisionUnhealthy(message))
	return ctrl.Result{RequeueAfter: time.Second}, verdict{reason: v1.ReasonProgressing, message: message}, nil
}
