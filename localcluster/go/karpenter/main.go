// Command karpenter is Karpenter with the nodes of its kwok provider: Node objects without
// machines. It ends when its parent does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	if os.Getenv("LOCALCLUSTER_LIFELINE") != "" {
		go endWithParent()
	}
	ctx, op := operator.NewOperator()
	client, clock := op.GetClient(), op.Clock
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "karpenter: instance types: %v\n", err)
		os.Exit(2)
	}
	plain := &stocked{
		CloudProvider: kwok.NewCloudProvider(ctx, client, types),
		soldOut:       soldOut(),
		refused:       map[string]time.Time{},
	}
	cloud := overlay.Decorate(plain, client, op.InstanceTypeStore)
	cluster := state.NewCluster(clock, client, cloud)
	all := controllers.NewControllers(
		ctx, op.Manager, clock, client, op.EventRecorder, cloud, plain, cluster, op.InstanceTypeStore,
	)
	op.WithControllers(ctx, all...).Start(ctx)
}

// Clouds tell Karpenter nothing of their stock. So its providers take an instance type of which a
// cloud has had none for unavailable, on AWS for this long (pkg/cache/cache.go,
// UnavailableOfferingsTTL).
const unavailableFor = 3 * time.Minute

// stocked is a cloud that has sold out of some instance types.
type stocked struct {
	cloudprovider.CloudProvider
	soldOut []string
	mutex   sync.Mutex
	refused map[string]time.Time
}

// soldOut returns the names of the instance types that nobody gets, from the environment.
func soldOut() []string {
	return strings.FieldsFunc(os.Getenv("LOCALCLUSTER_SOLD_OUT"), func(r rune) bool { return r == ',' })
}

// Create fails as a real cloud does if it has none of the instance types that would do.
func (s *stocked) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	for _, requirement := range claim.Spec.Requirements {
		if requirement.Key != corev1.LabelInstanceTypeStable {
			continue
		}
		left := func(name string) bool { return !slices.Contains(s.soldOut, name) }
		if !slices.ContainsFunc(requirement.Values, left) {
			s.refuse(requirement.Values)
			names := strings.Join(requirement.Values, ", ")
			return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("no %s is left", names))
		}
	}
	return s.CloudProvider.Create(ctx, claim)
}

func (s *stocked) refuse(names []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, name := range names {
		s.refused[name] = time.Now()
	}
}

// GetInstanceTypes returns the instance types, of which those that were just sold out have no
// available offering.
func (s *stocked) GetInstanceTypes(
	ctx context.Context, pool *v1.NodePool,
) ([]*cloudprovider.InstanceType, error) {
	types, err := s.CloudProvider.GetInstanceTypes(ctx, pool)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := slices.Clone(types)
	for i, each := range types {
		if at, known := s.refused[each.Name]; known && time.Since(at) < unavailableFor {
			found[i] = unavailable(each)
		}
	}
	return found, err
}

func unavailable(of *cloudprovider.InstanceType) *cloudprovider.InstanceType {
	copied := &cloudprovider.InstanceType{
		Name: of.Name, Requirements: of.Requirements, Capacity: of.Capacity, Overhead: of.Overhead,
	}
	for _, offering := range of.Offerings {
		one := *offering
		one.Available = false
		copied.Offerings = append(copied.Offerings, &one)
	}
	return copied
}

// endWithParent ends this process when its standard input closes: its parent holds the other end.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
