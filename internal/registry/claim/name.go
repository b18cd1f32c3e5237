package claim

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Name is the name of a repository without tags. Of several repositories with similar names, one gets tags.
type Name struct {
	Client *remote.Client
	// Ref is the repository with its first tag.
	Ref oci.Reference
	// Key is the result of NameKey, which is the same for all similar names.
	Key string
	// Similar returns the other repositories with similar names, including those without tags.
	Similar func(context.Context) ([]oci.Reference, error)
	// Published returns the one of the repositories that has tags; "" if none has.
	Published func(context.Context) (string, error)
}

// First is the first content of a repository with a new name.
type First struct {
	// Repository is the repository, without the host.
	Repository string
	// Tag and Content are the tag and the content of the push. They are zero if the repository has tags.
	Tag     string
	Content oci.Digest
}

// Decide returns the repository that has tags, or must get them: that of the name with the wanted content, or that of another server. The content must be
// in the registry. After a decision, the content is pushed under the tag, and then Clear is called.
func (n Name) Decide(ctx context.Context, wanted oci.Digest) (First, error) {
	a, own := n.agreement(), First{n.Ref.Repository, n.Ref.Tag, wanted}
	value, err := a.decide(ctx, own.value(), map[string]string{
		repositoryAnnotation: own.Repository, tagAnnotation: own.Tag, contentAnnotation: wanted.String(),
	})
	if err != nil || value == own.value() {
		return own, err
	}
	repositories, err := a.repositories(ctx)
	if err != nil {
		return First{}, err
	}
	annotations, err := a.annotations(ctx, repositories, value)
	if err != nil && !isMissing(err) {
		return First{}, err
	}
	published, publishedErr := n.Published(ctx)
	if publishedErr != nil || published != "" {
		return First{Repository: published}, publishedErr
	}
	first := First{Repository: annotations[repositoryAnnotation], Tag: annotations[tagAnnotation]}
	var contentErr error
	first.Content, contentErr = oci.ParseDigest(annotations[contentAnnotation])
	if errors.Join(err, contentErr) != nil || first.value() != value || !oci.ValidTag(first.Tag) {
		return First{}, ErrContended.New(nil, "a repository with a similar name as %s is created at the same time", n.Ref)
	}
	return first, nil
}

// value returns the value of an agreement for a repository.
func (f First) value() oci.Digest { return oci.DigestOf([]byte(f.Repository)) }

// Clear deletes the claims of the name, of which one repository has tags. Registries can refuse deletions; the claims remain then.
func (n Name) Clear(ctx context.Context) error {
	repositories, err := n.agreement().repositories(ctx)
	if err != nil {
		return err
	}
	for _, repository := range repositories {
		if err := clearClaims(ctx, n.Client, repository, func(key string, _ map[string]bool) bool { return key == n.Key }); err != nil {
			return err
		}
	}
	return nil
}

func (n Name) agreement() agreement {
	return agreement{
		client: n.Client, own: n.Ref, key: n.Key,
		repositories: func(ctx context.Context) ([]oci.Reference, error) {
			similar, err := n.Similar(ctx)
			return append([]oci.Reference{n.Ref}, similar...), err
		},
		published: func(ctx context.Context) (oci.Digest, error) {
			repository, err := n.Published(ctx)
			if err != nil || repository == "" {
				return oci.Digest{}, err
			}
			return First{Repository: repository}.value(), nil
		},
	}
}
