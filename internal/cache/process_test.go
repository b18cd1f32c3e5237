//go:build unix

package cache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociimage "github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// childVariable is the environment variable that selects the role of a child process of
// the test.
const childVariable = "XPKG_TEST_CACHE_CHILD"

func TestMain(m *testing.M) {
	children := map[string]func(args []string) error{"worker": worker, "steps": steps}
	words := strings.Split(os.Getenv(childVariable), "\n")
	if child, ok := children[words[0]]; ok {
		if err := child(words[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(words, "\n"))
	return cmd
}

// hurried returns a clock on which ten minutes pass in a second, from a start that all
// processes share.
func hurried(nanoseconds string) (func() time.Time, error) {
	n, err := strconv.ParseInt(nanoseconds, 10, 64)
	start := time.Unix(0, n)
	return func() time.Time { return start.Add(600 * time.Since(start)) }, err
}

// packages is the number of packages that the workers compete for; workersLimit has room
// for summary half of them.
const (
	packages     = 8
	workersLimit = 9000
)

// worker fetches, reads, uses and prunes packages at random. It fails if it cannot read
// fetched content, or loses content in use.
func worker(args []string) error {
	ctx := context.Background()
	number, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	now, err := hurried(args[2])
	if err != nil {
		return err
	}
	c, err := Open(args[0], Options{Limit: workersLimit, Now: now})
	if err != nil {
		return err
	}
	var images []*ociimage.Image
	for i := range packages {
		img, err := buildImage(ctx, fmt.Sprint("package-", i), 1000)
		if err != nil {
			return err
		}
		images = append(images, img)
	}
	mine := images[number]
	if err := fetch(ctx, c, mine); err != nil {
		return err
	}
	if err := c.Use(fmt.Sprint("worker ", number), []oci.Digest{mine.Digest()}); err != nil {
		return err
	}
	if err := fetch(ctx, c, mine); err != nil {
		return err
	}
	fmt.Println("ready")
	r := rand.New(rand.NewPCG(uint64(number), 1))
	for range 60 {
		if err := act(ctx, c, r, images); err != nil {
			return err
		}
		if err := stream(ctx, c.Store(), mine.Digest()); err != nil {
			return fmt.Errorf("worker %d lost what it uses: %w", number, err)
		}
	}
	return c.Close()
}

// act does one thing.
func act(ctx context.Context, c *Cache, r *rand.Rand, images []*ociimage.Image) error {
	switch img := images[r.IntN(len(images))]; r.IntN(5) {
	case 0:
		_, err := c.Prune(ctx, PruneOptions{MaxBytes: workersLimit / 2})
		return err
	case 1:
		_, err := c.List(ctx)
		return err
	case 2:
		err := stream(ctx, c.Store(), img.Digest())
		if errors.Is(err, oci.ErrBlobNotFound) {
			return nil
		}
		return err
	default:
		return fetch(ctx, c, img)
	}
}

// fetch fetches a package that is not in the cache, and fetches it again if it was
// evicted before it could be read.
func fetch(ctx context.Context, c *Cache, img *ociimage.Image) error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := put(ctx, c, img)
		if err == nil {
			err = stream(ctx, c.Store(), img.Digest())
		}
		again := errors.Is(err, oci.ErrBlobNotFound) || errors.Is(err, ErrCacheBusy)
		if !again || time.Now().After(deadline) {
			return err
		}
	}
}

// Several processes fetch, read, use and prune at once.
//
// hardening: K3
func TestProcessesShareCache(t *testing.T) {
	if testing.Short() {
		t.Skip("processes that wait for room take seconds")
	}
	dir := filepath.Join(t.TempDir(), "cache")
	start := fmt.Sprint(time.Now().UnixNano())
	now, err := hurried(start)
	must(t, err)
	var all []*exec.Cmd
	var outputs []*bufio.Scanner
	for i := range 3 {
		cmd := child(t, "worker", dir, strconv.Itoa(i), start)
		out, err := cmd.StdoutPipe()
		must(t, err)
		cmd.Stderr = os.Stderr
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		all, outputs = append(all, cmd), append(outputs, bufio.NewScanner(out))
	}
	c := open(t, dir, Options{Limit: workersLimit, Now: now})
	for i, out := range outputs {
		for out.Scan() {
			if out.Text() != "ready" {
				t.Errorf("worker %d: %s", i, out.Text())
			}
			// Without the lock, content that is being evicted would count together with
			// its replacement.
			must(t, c.store.Exclusive(t.Context(), func() error {
				if n := diskSize(t, c); n > workersLimit {
					t.Errorf("the cache has %d bytes, more than %d", n, workersLimit)
				}
				return nil
			}))
		}
		if err := all[i].Wait(); err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	r, err := c.Verify(t.Context())
	if err != nil || len(r.Damaged)+len(r.Missing) > 0 {
		t.Errorf("%+v (%v)", r, err)
	}
}

// stepsLimit has room for some of the packages of the steps.
const stepsLimit = 16_000

// steps runs through the life of a cache and kills itself before a change.
func steps(args []string) error {
	ctx := context.Background()
	left, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	clock := newClock()
	c, err := Open(args[0], Options{Limit: stepsLimit, Now: clock.Now, Before: func(string) error {
		if left--; left == -1 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	var images []*ociimage.Image
	for i := range 5 {
		img, err := buildImage(ctx, fmt.Sprint("package-", i), 6000+600*i)
		if err != nil {
			return err
		}
		images = append(images, img)
	}
	for i, do := range []func() error{
		func() error { _, err := c.Add(ctx, filepath.Join(args[0], "dropped.xpkg"), "added"); return err },
		func() error { return put(ctx, c, images[1]) },
		func() error { return c.Use("cluster", []oci.Digest{images[1].Digest()}) },
		func() error { _, err := c.Named(ctx, "packed"); return err },
		func() error {
			return c.Store().PutDerived(ctx, store.DerivedKey{Digest: images[1].Digest(), Name: "objects"}, make([]byte, 100))
		},
		func() error { return put(ctx, c, images[3]) },
		func() error { return put(ctx, c, images[4]) },
		func() error { _, err := c.List(ctx); return err },
		func() error { _, err := c.Prune(ctx, PruneOptions{All: true}); return err },
		func() error { return c.Use("cluster", nil) },
	} {
		if err := do(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		clock.advance(time.Hour)
	}
	fmt.Println("done")
	return c.Close()
}

// Wherever a process ends, the cache can be opened, holds nothing that is wrong and
// no more than its limit, and the same steps lead to the same end.
//
// hardening: K1
func TestCacheSurvivesKillAtEachChange(t *testing.T) {
	// The subtests wait for the disk most of the time.
	t.Parallel()
	stride := 17
	if lane.IsFull() {
		stride = 1
	}
	dropped, packed := archive(t, image(t, "package-0", 6000)), gzipped(t, archive(t, image(t, "package-2", 10)))
	for n := 0; ; n += stride {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "dropped.xpkg"), dropped, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "packed.xpkg.gz"), packed, 0o600))
		out, err := child(t, "steps", dir, strconv.Itoa(n)).Output()
		if err == nil {
			t.Logf("%d changes", n)
			if n < 40 {
				t.Errorf("only %d changes were seen", n)
			}
			return
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("killed before change %d: %s %v", n, out, err)
		}
		c := open(t, dir, Options{Limit: stepsLimit, Now: newClock().Now})
		r, err := c.Verify(t.Context())
		if err != nil || len(r.Damaged)+len(r.Missing) > 0 {
			t.Fatalf("killed before change %d: %+v (%v)", n, r, err)
		}
		if size := diskSize(t, c); size > c.limit {
			t.Fatalf("killed before change %d: the cache has %d bytes", n, size)
		}
		must(t, c.Close())
		if n%4 != 0 && stride == 1 {
			continue
		}
		if out, err := child(t, "steps", dir, "-1").Output(); err != nil {
			t.Fatalf("killed before change %d, then again: %s %v", n, out, err)
		}
	}
}
