package upgrade_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// callers call a function continuously, as a composition engine does: at the endpoint in the status
// of the active revision, and with a certificate of the same CA.
type callers struct {
	client       client.Client
	program      string
	certificates string
	// calls and failed are valid after the callers have stopped.
	calls  int
	failed []string
}

// callersOf calls a function until the returned function is called.
func callersOf(s *suite, function string, certificates *corev1.Secret) (c *callers, stop func()) {
	s.Helper()
	dir := s.TempDir()
	c = &callers{client: s.Client, program: filepath.Join(dir, "call-function"), certificates: dir}
	program, err := scratch.Compile("../../examples/function-greet/cmd/call-function")
	if err != nil {
		s.Fatal(err)
	}
	files := map[string][]byte{c.program: program}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		files[filepath.Join(dir, name)] = certificates.Data[name]
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o700); err != nil { // One of the files is a program.
			s.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			c.call(ctx, function)
		}
	}()
	return c, func() {
		cancel()
		<-ended
	}
}

// errNoEndpoint means that no active revision has an endpoint.
var errNoEndpoint = errors.New("no active revision has an endpoint")

// call makes one call. It does not count if the end of the test interrupts it. A call to an endpoint
// that the active revision no longer has is repeated, because an upgrade can end between the read of
// the endpoint and the call.
func (c *callers) call(ctx context.Context, function string) {
	for ctx.Err() == nil {
		endpoint, err := c.endpoint(ctx, function)
		if errors.Is(err, errNoEndpoint) {
			continue
		}
		var out string
		if err == nil {
			out, err = c.ask(ctx, endpoint)
		}
		if err != nil {
			if now, errNow := c.endpoint(ctx, function); errNow == nil && now != endpoint {
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		c.calls++
		if err != nil {
			c.failed = append(c.failed, fmt.Sprintf("call %d: %v: %s", c.calls, err, out))
		}
		return
	}
}

// endpoint returns the endpoint in the status of the active revision.
func (c *callers) endpoint(ctx context.Context, function string) (string, error) {
	var all v1.FunctionRevisionList
	if err := c.client.List(ctx, &all, client.MatchingLabels{v1.LabelPackage: function}); err != nil {
		return "", err
	}
	for _, rev := range all.Items {
		if rev.Spec.DesiredState == v1.RevisionActive && rev.Status.Endpoint != "" {
			return rev.Status.Endpoint, nil
		}
	}
	return "", errNoEndpoint
}

// ask calls the function at an endpoint, and returns the output of the client.
func (c *callers) ask(ctx context.Context, endpoint string) (string, error) {
	call := exec.CommandContext(ctx, c.program, "--target", endpoint, "--tls-certs-dir", c.certificates)
	call.Stdin = bytes.NewBufferString(
		`{"input": {"resource": "greeting", "nameFrom": "spec.guest"}, "observed": {"composite": {"resource": {"spec": {"guest": "world"}}}}}`,
	)
	out, err := call.CombinedOutput()
	return string(out), err
}

// A function that runs as a process answers during upgrades: both versions run until the new one
// answers, and a caller that follows the active revision gets no error.
func TestFunctionAnswersThroughUpgrades(t *testing.T) {
	s := newSuite(t)
	s.configure()
	p := provider("caller", s.push("v1", "serve", ""))
	s.Create(s, p)
	s.WaitReady(s, p)
	certificates := &corev1.Secret{}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Namespace: "crossplane-system", Name: "caller-tls-client"}, certificates,
	); err != nil {
		t.Fatal(err)
	}
	executable, err := scratch.Compile("../../examples/function-greet/cmd/function-greet")
	if err != nil {
		t.Fatal(err)
	}
	push := func(version string) string {
		meta := fmt.Sprintf(
			"apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: answers\n  annotations: {version: %s}\n",
			version,
		)
		return publish.Program(t, s.Registry, "upgrade/function", version, []byte(meta), executable).String()
	}
	fn := &v1.Function{}
	fn.Name, fn.Spec.Package = "answers", push("v1")
	s.Create(t, fn)
	s.untilAnswers(fn, "")
	callers, stop := callersOf(s, fn.Name, certificates)
	for _, version := range []string{"v2", "v3"} {
		before := fn.Status.CurrentRevision
		next := push(version)
		env.Update(t, s.Env, fn, func(fn *v1.Function) { fn.Spec.Package = next })
		s.untilAnswers(fn, before)
		wait.Until(t, env.Limit, "the program of "+before+" has ended", func() (string, bool) {
			status, known := s.supervisor.Status(before)
			return fmt.Sprintf("%+v", status), !known
		})
	}
	stop()
	if len(callers.failed) > 0 {
		t.Errorf("%d of %d calls failed, the first: %s", len(callers.failed), callers.calls, callers.failed[0])
	}
	t.Logf("%d calls", callers.calls)
	s.Delete(t, fn, p)
}

// untilAnswers waits until a function is healthy with another revision than before.
func (s *suite) untilAnswers(fn *v1.Function, before string) {
	s.Helper()
	wait.Until(s, env.Limit, fn.Name+" is healthy", func() (string, bool) {
		if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(fn), fn); err != nil {
			return err.Error(), false
		}
		c := fn.GetCondition(v1.TypeHealthy)
		return fmt.Sprintf("%+v", fn.Status),
			c.Status == corev1.ConditionTrue && c.ObservedGeneration == fn.Generation && fn.Status.CurrentRevision != before
	})
}
