// Sums as a model may write them, and what the page's calculator makes of them.
import { calculate } from '../../../../web/app/src/tools/calculator';

const sums = [
  '1 + 2 * 3', '(1 + 2) * 3', '-2^2', '2^-1', '2^3^2', '10 - 4 - 3', '7 % 4', '50%',
  '17.5% of 2349', '10% + 5', '3!', '2 pi', '3(4 + 1)', 'sqrt(16) + √9', 'max(1, 7, 3)',
  '0.1 + 0.2', '1e3 / 4', '6 × 7', '12 ÷ 4', '1_000 + 1',
  '1 / 0', '2 +', '(1', 'log(8, 2)', 'constructor', 'alert(1)', '3.5!', '',
];
const tried = (sum: string): number | string => {
  try {
    return calculate(sum);
  } catch (e) {
    return (e as Error).message;
  }
};
(globalThis as { sums?: (number | string)[] }).sums = sums.map(tried);
