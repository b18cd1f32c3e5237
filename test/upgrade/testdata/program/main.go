// Command program is the runtime of the upgrade tests. It copies the number of each Thing to its
// status, with its own version, and rejects Things with the name forbidden. It listens on a fixed
// address while it runs, so a second instance fails and reports itself.
//
//	program serve VERSION    works
//	program crash VERSION    works for a moment, and ends
//	program tidy VERSION     works, and keeps each Thing that is deleted until it is
//	                         annotated with "upgrade.test/tidy"
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(mode, version string) error {
	hold, err := net.Listen("tcp", os.Getenv("HOLD_ADDRESS"))
	if err != nil {
		// Another instance runs.
		_, perr := http.Post(os.Getenv("REPORT_URL")+"?version="+version, "", nil) // The process ends.
		return fmt.Errorf("%w; reported: %v", err, perr)
	}
	defer hold.Close()
	if mode == "crash" {
		time.AfterFunc(time.Second, func() { os.Exit(7) })
	}
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Metrics:                server.Options{BindAddress: os.Getenv("METRICS_BIND_ADDRESS")},
		HealthProbeBindAddress: os.Getenv("HEALTH_PROBE_BIND_ADDRESS"),
	})
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(os.Getenv("WEBHOOK_PORT"))
	if err != nil {
		return err
	}
	hooks := webhook.NewServer(webhook.Options{Port: port, CertDir: os.Getenv("TLS_SERVER_CERTS_DIR")})
	hooks.Register("/validate",
		&admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
			if r.Name == "forbidden" {
				return admission.Denied(version + " forbids it")
			}
			return admission.Allowed("")
		})})
	if err := mgr.Add(hooks); err != nil {
		return err
	}
	r := &reconciler{mgr.GetClient(), version, mode == "tidy"}
	if err := ctrl.NewControllerManagedBy(mgr).Named("thing").For(thing()).Complete(r); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func thing() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "upgrade.test", Version: "v1", Kind: "Thing"})
	return u
}

type reconciler struct {
	client  client.Client
	version string
	tidy    bool
}

// Reconcile copies the number of a Thing to its status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := thing()
	if err := r.client.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.tidy {
		if done, err := r.keep(ctx, t); done || err != nil {
			return ctrl.Result{}, err
		}
	}
	number, _, err := unstructured.NestedInt64(t.Object, "spec", "number")
	if err != nil {
		return ctrl.Result{}, err
	}
	seen, _, err := unstructured.NestedInt64(t.Object, "status", "seen")
	if err != nil {
		return ctrl.Result{}, err
	}
	by, _, err := unstructured.NestedString(t.Object, "status", "by")
	if err != nil || seen == number && by == r.version {
		return ctrl.Result{}, err
	}
	t.Object["status"] = map[string]any{"seen": number, "by": r.version, "at": metav1.Now().Format(time.RFC3339)}
	return ctrl.Result{}, r.client.Status().Update(ctx, t)
}

// keep adds a finalizer, and removes it from a deleted Thing with the annotation.
func (r *reconciler) keep(ctx context.Context, t *unstructured.Unstructured) (done bool, err error) {
	const mark = "upgrade.test/tidy"
	switch {
	case t.GetDeletionTimestamp() == nil && !controllerutil.ContainsFinalizer(t, mark):
		controllerutil.AddFinalizer(t, mark)
	case t.GetDeletionTimestamp() != nil && t.GetAnnotations()[mark] != "" && controllerutil.ContainsFinalizer(t, mark):
		controllerutil.RemoveFinalizer(t, mark)
	default:
		return t.GetDeletionTimestamp() != nil, nil
	}
	return true, r.client.Update(ctx, t)
}
