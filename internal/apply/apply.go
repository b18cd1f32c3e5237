package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// Failures of carrying out a plan.
var (
	ErrRefused = failure.Register(failure.Code{
		Name: "ForeignOwner", Class: failure.Conflict,
		Cause: "An object that the package brings belongs to somebody else, or is being deleted.",
		Fix:   "Uninstall the package that holds the object, or remove the object, and try again. Nothing was written.",
	})
	ErrMoved = failure.Register(failure.Code{
		Name: "ObjectMoved", Class: failure.Conflict,
		Cause: "An object was changed by somebody else between the plan and its execution.",
		Fix:   "Nothing needs to be done: the manager makes a new plan and tries again.",
	})
	ErrRejected = failure.Register(failure.Code{
		Name: "ObjectRejected", Class: failure.Invalid,
		Cause: "The API server refused an object of the package.",
		Fix:   "Correct the object in the package and publish a new version; `xpkg lint` finds most of these before a package is published.",
	})
	ErrForbidden = failure.Register(failure.Code{
		Name: "Forbidden", Class: failure.Unauthorized,
		Cause: "The cluster does not allow xpkg to write an object.",
		Fix:   "Grant the permission that the message names to the identity that xpkg runs as.",
	})
	ErrServer = failure.Register(failure.Code{
		Name: "ServerUnavailable", Class: failure.Unavailable,
		Cause: "The API server did not answer, or could not serve a request.",
		Fix:   "Check that the cluster is reachable and healthy; the attempt is repeated.",
	})
)

// Concurrency is how many writes are under way at once. More do not help: the
// API server works on definitions one after the other.
const Concurrency = 10

// Content gives the canonical JSON of one object of the package.
type Content func(plan.Ref) ([]byte, error)

// Run carries p out and returns the UIDs of the objects it wrote. A plan with
// refusals writes nothing. When a write fails the others that are under way are
// finished, so that the next plan continues from there.
func (c *Cluster) Run(ctx context.Context, p plan.Plan, content Content) (map[plan.Ref]types.UID, error) {
	if len(p.Refusals) > 0 {
		return nil, refused(p.Refusals)
	}
	written := make(map[plan.Ref]types.UID, len(p.Changes))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(Concurrency)
	for _, ch := range p.Changes {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			uid, err := c.one(context.WithoutCancel(ctx), ch, content)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			written[ch.Ref] = uid
			return nil
		})
	}
	return written, group.Wait()
}

func (c *Cluster) one(ctx context.Context, ch plan.Change, content Content) (types.UID, error) {
	var raw []byte
	if !ch.MetadataOnly {
		var err error
		if raw, err = content(ch.Ref); err != nil {
			return "", err
		}
	}
	uid, err := c.write(ctx, ch, raw)
	if err != nil {
		return "", classify(err, "%s %s %s", ch.Action, ch.Ref.Kind, ch.Ref.Name)
	}
	return uid, nil
}

// classify turns an answer of the API server into a failure.
func classify(err error, what string, args ...any) error {
	code := ErrServer
	var status apierrors.APIStatus
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		code = ErrMoved
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		code = ErrForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		code = ErrRejected
	case !errors.As(err, &status):
		err = fmt.Errorf("the API server did not answer: %w", err)
	}
	return code.New(err, what, args...)
}

// refused names the first few objects that stop a plan, and who holds them.
func refused(refusals []plan.Refusal) error {
	const named = 3
	var reasons []string
	for _, r := range refusals[:min(named, len(refusals))] {
		reasons = append(reasons, r.Reason)
	}
	if rest := len(refusals) - named; rest > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", rest))
	}
	return ErrRefused.New(errors.New(strings.Join(reasons, "; ")), "objects of the package cannot be established")
}
