package provide

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// TestAllSpellingsOfARepositoryAreOnePackage asks for a kind that two packages provide, of which one is known under
// other spellings of its repository.
func TestAllSpellingsOfARepositoryAreOnePackage(t *testing.T) {
	of := func(repository string) Candidate {
		return bucket(repository, func(c *Candidate) { c.Repository, c.Downloaded = repository, true })
	}
	candidates := []Candidate{of("docker.io/other/provider"), of("docker.io/acme/provider")}
	for _, spelling := range []string{"docker.io/acme/provider", "index.docker.io/acme/provider"} {
		kind := dependency.KindRef{Group: s3, Name: "Bucket"}
		for reason, q := range map[Reason]Request{
			Recorded: {Kind: kind, Recorded: spelling},
			Present:  {Kind: kind, Present: map[string]bool{spelling: true}},
		} {
			r := Rank(q, candidates)
			if len(r.Order) != 2 || r.Order[0].Repository != candidates[1].Repository || r.Decided != reason {
				t.Errorf("%s with %s: %q, %+v", reason, spelling, r.Decided, r.Order)
			}
			if kept := withoutDownloads(candidates, q.located()); len(kept) != 1 ||
				kept[0].Repository != candidates[1].Repository {
				t.Errorf("%s with %s: the candidates %+v are kept", reason, spelling, kept)
			}
		}
	}
	held := bucket("", func(c *Candidate) { c.Repository, c.CRDs = "docker.io/acme/provider", []string{"buckets." + s3} })
	q := Request{Kind: dependency.KindRef{Group: s3, Name: "Bucket"}, Holders: map[string]string{
		"buckets." + s3: "index.docker.io/acme/provider",
	}}
	if r := Rank(q, []Candidate{held}); len(r.Order) != 1 {
		t.Errorf("a package is refused because it holds its own CRD: %+v", r.Dropped)
	}
}
