// FineTune - teach the loaded model something: data, settings, the training, and the adapters that
// came of it.

import { useEffect } from 'preact/hooks';
import { AdapterRows } from '../components/AdapterRows';
import { LessonForm } from '../components/LessonForm';
import { EngineBanner, LoadCard } from '../components/LoadCard';
import { TopBar } from '../components/TopBar';
import { TrainingCard } from '../components/TrainingCard';
import { engineState } from '../state/engine';
import { notifyError } from '../state/notices';
import { lookInStore } from '../state/shelf';
import { act, findKept, training } from '../state/train';

export function FineTune() {
  const state = engineState.value;
  useEffect(() => {
    act(findKept);
    lookInStore().catch(notifyError);
  }, []);
  return (
    <>
      <TopBar />
      <div class="view">
        <div class="page">
          <div class="page-head">
            <h1>Fine-tune</h1>
            <p>
              Teach {state.kind === 'ready' ? <strong>{state.model.name}</strong> : 'a model'} from
              examples, on this device. What it learns is an adapter: a small file that
              conversations switch on.
            </p>
          </div>
          <LoadCard />
          <EngineBanner />
          <TrainingCard />
          {training.value.kind !== 'running' && <LessonForm />}
          <AdapterRows always />
        </div>
      </div>
    </>
  );
}
