// Command schedulerbench measures kube-scheduler's own code on a cluster in a JSON file.
//
// For each pod to place it prints what its filters take over all nodes and what
// the whole algorithm takes: snapshot, filters, scores, and preemption where no node is left.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

type input struct {
	Nodes      []*v1.Node
	Pods       []*v1.Pod
	Namespaces []*v1.Namespace
	Probes     map[string]*v1.Pod
}

// Figures of one pod to place.
type figures struct {
	Feasible  int64  `json:"feasible"`
	Message   string `json:"message"`
	Filter    times  `json:"filter"`
	Algorithm times  `json:"algorithm"`
}

// Times of all rounds in milliseconds: by the clock, and of all cores together.
type times struct {
	Wall []float64 `json:"wall_ms"`
	CPU  []float64 `json:"cpu_ms"`
}

func (t *times) measure(work func()) {
	started, spent := time.Now(), processorTime()
	work()
	t.Wall = append(t.Wall, milliseconds(time.Since(started)))
	t.CPU = append(t.CPU, milliseconds(processorTime()-spent))
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: schedulerbench CLUSTER.json ROUNDS"))
	}
	rounds, err := strconv.Atoi(os.Args[2])
	check(err)
	klog.SetOutput(os.Stderr)
	bench, err := load(os.Args[1])
	check(err)
	report := map[string]any{"heap_bytes": heap()}
	for name, pod := range bench.probes {
		report[name] = bench.measure(pod, rounds)
	}
	check(json.NewEncoder(os.Stdout).Encode(report))
}

type bench struct {
	ctx       context.Context
	scheduler *scheduler.Scheduler
	framework framework.Framework
	snapshot  *cache.Snapshot
	probes    map[string]*v1.Pod
}

func load(path string) (*bench, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var given input
	if err := json.Unmarshal(data, &given); err != nil {
		return nil, err
	}
	ctx := context.Background()
	client := fake.NewClientset()
	for _, namespace := range given.Namespaces {
		if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	for _, pod := range given.Probes { // preemption reads the pod from its informer
		if _, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	made, err := newScheduler(ctx, client)
	if err != nil {
		return nil, err
	}
	logger := klog.FromContext(ctx)
	for _, node := range given.Nodes {
		made.Cache.AddNode(logger, node)
	}
	for _, pod := range given.Pods {
		if err := made.Cache.AddPod(logger, pod); err != nil {
			return nil, err
		}
	}
	chosen := made.Profiles[v1.DefaultSchedulerName]
	return &bench{ctx, made, chosen, chosen.SnapshotSharedLister().(*cache.Snapshot), given.Probes}, nil
}

// newScheduler makes the default one, its informers fed by the client but nothing running.
func newScheduler(ctx context.Context, client clientset.Interface) (*scheduler.Scheduler, error) {
	informers := scheduler.NewInformerFactory(client, 0)
	recorders := profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}))
	made, err := scheduler.New(ctx, client, informers, nil, recorders)
	if err != nil {
		return nil, err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	return made, nil
}

func (b *bench) measure(pod *v1.Pod, rounds int) *figures {
	measured := &figures{}
	for range rounds {
		measured.Filter.measure(func() { measured.Feasible = b.filter(pod) })
		measured.Algorithm.measure(func() { measured.Message = b.schedule(pod) })
	}
	return measured
}

// filter counts the nodes that pass, looking at all of them, as parallel as the scheduler does.
func (b *bench) filter(pod *v1.Pod) int64 {
	check(b.scheduler.Cache.UpdateSnapshot(klog.FromContext(b.ctx), b.snapshot))
	nodes, err := b.snapshot.NodeInfos().List()
	check(err)
	state := framework.NewCycleState()
	// A default profile lets no plugin name the nodes beforehand for these pods.
	if _, status, _ := b.framework.RunPreFilterPlugins(b.ctx, state, pod); !status.IsSuccess() {
		return 0
	}
	var feasible atomic.Int64
	b.framework.Parallelizer().Until(b.ctx, len(nodes), func(index int) {
		if b.framework.RunFilterPluginsWithNominatedPods(b.ctx, state, pod, nodes[index]).IsSuccess() {
			feasible.Add(1)
		}
	}, "Filter")
	return feasible.Load()
}

// schedule does what a scheduling cycle does up to its result, and returns a refusal's text.
func (b *bench) schedule(pod *v1.Pod) string {
	check(b.scheduler.Cache.UpdateSnapshot(klog.FromContext(b.ctx), b.snapshot))
	info, err := framework.NewPodInfo(pod)
	check(err)
	state := framework.NewCycleState()
	_, err = b.scheduler.SchedulePod(b.ctx, b.framework, state, &framework.QueuedPodInfo{PodInfo: info})
	if err == nil {
		return ""
	}
	refusal, ok := err.(*framework.FitError)
	if !ok {
		fail(err)
	}
	_, status := b.framework.RunPostFilterPlugins(b.ctx, state, pod, refusal.Diagnosis.NodeToStatus)
	refusal.Diagnosis.PostFilterMsg = status.Message()
	return refusal.Error()
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Nanoseconds()) / 1e6
}

// processorTime is what all threads of this process have used so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func heap() uint64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapInuse
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "schedulerbench:", err)
	os.Exit(1)
}
