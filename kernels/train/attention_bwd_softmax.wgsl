// attention_bwd_softmax - each row of scores: s becomes P = softmax(s) over the keys that it sees,
//   and d = dP becomes dS = P (dP - sum P dP); other keys become 0     (training)
//
//   starts  read    i32 a position                grid   one workgroup a (head, row)
//   s       update  n_head x rows x span f32      bytes  5 reads + 2 writes an element
//   d       update  n_head x rows x span f32      needs  FORWARD 1: d is any buffer, unread;
//                                                        PACKED 0: starts is any buffer, unread
//
// Reference: attend_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-9 nmse: f32 here, the device's
// exp.

//!axis tier plain
//!include train/attention_bwd.wgsl
//!include lib/sum.wgsl
//!bind s update array<f32>
//!bind d update array<f32>

override WG : u32 = 64u; // at most 256
override FORWARD : u32 = 0u;

var<workgroup> tops : array<f32, 256>;

fn workgroup_max(v : f32, lid : u32) -> f32 {
    tops[lid] = v;
    workgroupBarrier();
    var top = v;
    for (var i = 0u; i < WG; i++) {
        top = max(top, tops[i]);
    }
    return top;
}

fn unseen(at : u32) {
    s[at] = 0.0;
    if (FORWARD == 0u) {
        d[at] = 0.0;
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let row = flat_group(wid, num);
    if (row >= p.n_head * p.rows) {
        return;
    }
    let pos = p.row0 + row % p.rows;
    let first = first_key(pos) - p.key0;
    let end = pos + 1u - p.key0;
    let at = row * p.span;
    var top = -3.0e38;
    for (var j = first + lid; j < end; j += WG) {
        top = max(top, s[at + j]);
    }
    top = workgroup_max(top, lid);
    var total = 0.0;
    var both = 0.0;
    for (var j = first + lid; j < end; j += WG) {
        let e = exp(s[at + j] - top);
        s[at + j] = e;
        total += e;
        if (FORWARD == 0u) {
            both += e * d[at + j];
        }
    }
    total = workgroup_sum(total, lid);
    workgroupBarrier(); // before the second sum
    both = workgroup_sum(both, lid) / total;
    for (var j = first + lid; j < end; j += WG) {
        let e = s[at + j] / total;
        s[at + j] = e;
        if (FORWARD == 0u) {
            d[at + j] = e * (d[at + j] - both);
        }
    }
    for (var j = lid; j < first; j += WG) {
        unseen(at + j);
    }
    for (var j = end + lid; j < p.span; j += WG) {
        unseen(at + j);
    }
}
