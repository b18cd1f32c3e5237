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
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// callers call a function again and again, as a composition engine does: where the
// active revision says that it answers, and with a certificate of the same authority.
type callers struct {
	client       client.Client
	program      string
	certificates string
	// calls and failed are read when the callers have stopped.
	calls  int
	failed []string
}

// callersOf starts to call a function, until they are stopped.
func callersOf(s *stand, function string, certificates *corev1.Secret) (c *callers, stop func()) {
	s.Helper()
	dir := s.TempDir()
	c = &callers{client: s.client, program: filepath.Join(dir, "call-function"), certificates: dir}
	program, err := scratch.Compile("../../examples/function-greet/cmd/call-function")
	if err != nil {
		s.Fatal(err)
	}
	files := map[string][]byte{c.program: program}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		files[filepath.Join(dir, name)] = certificates.Data[name]
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o700); err != nil { //nolint:gosec // One of them is a program.
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

// handOver is how long it may take, between two versions, until the active revision says
// where the function answers. Callers look again meanwhile.
const handOver = time.Second

// errNowhere says that there is no active revision, or that it does not say where it
// answers. errLate says that a call took so long, on a machine that does other things,
// that what was read before it holds no more: the version before is there for two seconds
// at least when the next one says where it answers.
var (
	errNowhere = errors.New("the function says nowhere that it answers")
	errLate    = errors.New("the call was made too long after it was read where the function answers")
)

// call calls once. What is cut off by the end of the test does not count.
func (c *callers) call(ctx context.Context, function string) {
	said, err := c.ask(ctx, function)
	for began := time.Now(); errors.Is(err, errLate) || errors.Is(err, errNowhere) && time.Since(began) < handOver; {
		said, err = c.ask(ctx, function)
	}
	if ctx.Err() != nil {
		return
	}
	c.calls++
	if err != nil {
		c.failed = append(c.failed, fmt.Sprintf("call %d: %v: %s", c.calls, err, said))
	}
}

func (c *callers) ask(ctx context.Context, function string) (said string, err error) {
	var all v1.FunctionRevisionList
	began := time.Now()
	if err := c.client.List(ctx, &all, client.MatchingLabels{v1.LabelPackage: function}); err != nil {
		return "", err
	}
	for _, rev := range all.Items {
		if rev.Spec.DesiredState != v1.RevisionActive {
			continue
		}
		if rev.Status.Endpoint == "" {
			return "", errNowhere
		}
		call := exec.CommandContext(ctx, c.program, "--target", rev.Status.Endpoint, "--tls-certs-dir", c.certificates)
		call.Stdin = bytes.NewBufferString(`{"input": {"resource": "greeting", "nameFrom": "spec.guest"}, "observed": {"composite": {"resource": {"spec": {"guest": "world"}}}}}`)
		out, err := call.CombinedOutput()
		if took := time.Since(began); err != nil && took > handOver {
			err = errLate
		} else if err != nil {
			err = fmt.Errorf("%w after %s", err, took)
		}
		return string(out), err
	}
	return "", errNowhere
}

// A function answers while it is replaced, as a process too: both versions run until the
// new one answers, and whoever follows the active revision notices nothing.
func TestFunctionAnswersThroughUpgrades(t *testing.T) {
	s := newStand(t)
	s.configure()
	p := provider("caller", s.push("v1", "serve", ""))
	s.create(p)
	s.untilHealthy(p)
	certificates := &corev1.Secret{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "crossplane-system", Name: "caller-tls-client"}, certificates); err != nil {
		t.Fatal(err)
	}
	executable, err := scratch.Compile("../../examples/function-greet/cmd/function-greet")
	if err != nil {
		t.Fatal(err)
	}
	push := func(version string) string {
		meta := fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: answers\n  annotations: {version: %s}\n", version)
		return publish.Program(t, s.registry, "upgrade/function", version, []byte(meta), executable).String()
	}
	fn := &v1.Function{}
	fn.Name, fn.Spec.Package = "answers", push("v1")
	s.create(fn)
	s.untilAnswers(fn, "")
	callers, stop := callersOf(s, fn.Name, certificates)
	for _, version := range []string{"v2", "v3"} {
		before := fn.Status.CurrentRevision
		fn.Spec.Package = push(version)
		if err := s.client.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
		s.untilAnswers(fn, before)
		wait.Until(t, patience, "the program of "+before+" has ended", func() (string, bool) {
			status, known := s.supervisor.Status(before)
			return fmt.Sprintf("%+v", status), !known
		})
	}
	stop()
	if len(callers.failed) > 0 {
		t.Errorf("%d of %d calls failed, the first: %s", len(callers.failed), callers.calls, callers.failed[0])
	}
	t.Logf("%d calls", callers.calls)
	if err := s.client.Delete(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// untilAnswers waits until a function is healthy with another revision than before.
func (s *stand) untilAnswers(fn *v1.Function, before string) {
	s.Helper()
	wait.Until(s, patience, fn.Name+" is healthy", func() (string, bool) {
		if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(fn), fn); err != nil {
			return err.Error(), false
		}
		c := fn.GetCondition(v1.TypeHealthy)
		return fmt.Sprintf("%+v", fn.Status), c.Status == corev1.ConditionTrue && c.ObservedGeneration == fn.Generation && fn.Status.CurrentRevision != before
	})
}
