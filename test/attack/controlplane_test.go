//go:build linux

// Package attack_test installs hostile packages on a running control plane, and proves that
// nothing else is damaged.
package attack_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// limit is for a machine that is busy with other tests, and for 2,000 CRDs: the API server deletes
// 200 in about 25 seconds of CPU time, and more CRDs take longer each.
const limit = 30 * time.Minute

// plane is a control plane of the xpkg binary, with package runtimes as processes.
type plane struct {
	program, controlPlane, dir string

	cmd    *exec.Cmd
	log    *buffer.Buffer
	done   chan struct{}
	state  up.State
	client client.Client
}

func newPlane(t *testing.T, program string) *plane {
	t.Helper()
	log.SetLogger(logr.Discard())
	p := &plane{program: program, controlPlane: cluster.Program(t), dir: filepath.Join(t.TempDir(), "data")}
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	return p
}

// start starts the control plane with an open descriptor of its secrets, which a careless
// parent process could have left behind.
func (p *plane) start(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	planted, err := os.Open(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer planted.Close()
	p.log, p.done = &buffer.Buffer{}, make(chan struct{})
	p.cmd = exec.Command(p.program, "up", "--data-dir", p.dir, "--port", "0", "--registry-port", "0")
	p.cmd.Env = append(os.Environ(), "XPKG_CONTROLPLANE="+p.controlPlane, "HOME="+
		filepath.Join(filepath.Dir(p.dir), "home"))
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = p.log, p.log, []*os.File{planted, planted}
	// The control plane ends with the thread that started it, also if the test is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func(cmd *exec.Cmd, done chan struct{}) {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // The test reports an early end.
		}
		close(done)
	}(p.cmd, p.done)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the control plane is ready", func() (string, bool) {
		if !p.running() {
			t.Fatalf("the control plane ended:\n%s", p.log.String())
		}
		report, err := up.Status(p.dir)
		p.state = report.State
		return fmt.Sprint(err, p.log.String()), err == nil && report.Ready
	})
	p.connect(t)
}

func (p *plane) connect(t *testing.T) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", p.state.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	scheme, err := apis.NewScheme()
	for _, add := range []func() error{
		func() error { return corev1.AddToScheme(scheme) },
		func() error { return apiextensionsv1.AddToScheme(scheme) },
		func() error { return admissionregistrationv1.AddToScheme(scheme) },
		func() error { return coordinationv1.AddToScheme(scheme) },
	} {
		if err == nil {
			err = add()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
}

// running reports whether the process of the control plane runs.
func (p *plane) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop stops the control plane in order.
func (p *plane) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
	select {
	case <-p.done:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill()
		<-p.done
		t.Errorf("the control plane did not stop:\n%s", p.log.String())
	}
}

// restart stops or kills the control plane, and starts it again.
func (p *plane) restart(t *testing.T, kill bool) {
	t.Helper()
	if kill {
		_ = p.cmd.Process.Kill()
		<-p.done
	} else {
		p.stop(t)
	}
	p.start(t)
}

// install creates a package.
func (p *plane) install(t *testing.T, kind, name, reference string, annotations map[string]string) v1.Package {
	t.Helper()
	pkg := v1.NewPackage(kind)
	pkg.SetName(name)
	pkg.SetAnnotations(annotations)
	pkg.PackageSpec().Package = reference
	if err := p.client.Create(t.Context(), pkg); err != nil {
		t.Fatal(err)
	}
	return pkg
}

// until waits until the condition Ready of a package has a reason, or is true for the
// reason "Ready".
func (p *plane) until(t *testing.T, pkg v1.Package, reasons ...string) {
	t.Helper()
	wait.Until(t, limit, pkg.GetName()+" is "+strings.Join(reasons, " or "), func() (string, bool) {
		if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(pkg), pkg); err != nil {
			return err.Error(), false
		}
		ready := pkg.GetCondition(v1.TypeReady)
		reason := string(ready.Reason)
		if ready.Status == corev1.ConditionTrue {
			reason = "Ready"
		}
		for _, want := range reasons {
			if reason == want {
				return "", true
			}
		}
		return reason + ": " + ready.Message, false
	})
}

// remove deletes a package if it exists, and waits until it is gone. It also works after the
// end of the test.
func (p *plane) remove(t *testing.T, pkg v1.Package) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	defer cancel()
	if err := p.client.Delete(
		ctx, pkg, client.PropagationPolicy(metav1.DeletePropagationBackground),
	); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, pkg.GetName()+" is gone", func() (string, bool) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg)
		if err == nil {
			return pkg.GetCondition(v1.TypeReady).Message, false
		}
		return err.Error(), apierrors.IsNotFound(err)
	})
}

// runtimeLog returns the log of the runtime of a package.
func (p *plane) runtimeLog(t *testing.T, pkg v1.Package) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, "runtime", "logs", pkg.PackageStatus().CurrentRevision+".log*"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

// undamaged checks that the rest of the control plane works: writes succeed, the healthy
// package is healthy with the same runtime process, and its custom resources work.
func (p *plane) undamaged(t *testing.T, healthy v1.Package) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := p.client.Create(
		ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}, client.DryRunAll,
	); err != nil {
		t.Errorf("a write fails: %v", err)
	}
	p.until(t, healthy, "Ready")
	thing := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "healthy.test/v1", "kind": "Thing", "metadata": map[string]any{"name": "probe"},
		"spec": map[string]any{"size": int64(1)},
	}}
	if err := p.client.Create(ctx, thing); err != nil {
		t.Errorf("a custom resource of the healthy package: %v", err)
	} else if err := p.client.Delete(ctx, thing); err != nil {
		t.Errorf("a custom resource of the healthy package: %v", err)
	}
	// A runtime may slow the control plane down, but not stop it.
	wait.Until(t, limit, "the control plane is healthy", func() (string, bool) {
		report, err := up.Examine(ctx, p.dir)
		if err != nil {
			return err.Error(), false
		}
		for _, check := range report.Checks {
			if !check.Healthy {
				return fmt.Sprintf("%s at %s: %s", check.Name, check.Address, check.Error), false
			}
		}
		return "", true
	})
}
